// What an error says of its place, and how it says it.
#include "lib/core/error.hpp"

#include <gtest/gtest.h>

namespace mxfp4 {
namespace {

TEST(Error, SaysItsPlaceInWordsAndInFields) {
  const Error error = Error::input("missing").at_key("hidden_size").in_file("a/config.json");
  EXPECT_STREQ(error.what(), "a/config.json: hidden_size: missing");
  EXPECT_EQ(error.key(), "hidden_size");
  EXPECT_EQ(error.file(), "a/config.json");
  EXPECT_EQ(error.message(), "missing");
}

TEST(Error, KeepsTheInnermostPlace) {
  Error error = Error::input("missing").at_key("moe").in_file("inner.json");
  error.at_key("quantization").in_file("outer.json").add_context("layer 3");
  EXPECT_STREQ(error.what(), "layer 3: outer.json: quantization: inner.json: moe: missing");
  EXPECT_EQ(error.key(), "moe");
  EXPECT_EQ(error.file(), "inner.json");
}

TEST(Error, NamesAFileOnlyWhereNoneIsNamed) {
  const auto text = [](const Error& thrown) {
    try {
      in_file("model", [&]() -> void { throw Error(thrown); });
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(text(Error::input("empty")), "model: empty");
  EXPECT_EQ(text(Error::unsupported("5 ranks")), "model: 5 ranks");
  EXPECT_EQ(text(Error::input("cut off").in_file("model/a.safetensors")),
            "model/a.safetensors: cut off");
  EXPECT_EQ(text(Error::usage("--style: unknown")), "--style: unknown");
}

}  // namespace
}  // namespace mxfp4
