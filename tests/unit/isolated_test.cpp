// What happens in the child stays in the child.
#include "formats/isolated.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <stdexcept>

#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

std::string refusal(const std::function<void(const Emit&)>& body) {
  try {
    (void)run_isolated("the parser", body);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return std::string(error.what()) + "|" + error.hint_text();
  }
  return "returned";
}

TEST(Isolated, ReturnsWhatWasEmitted) {
  const std::string big(1 << 20, 'b');
  EXPECT_EQ(run_isolated("the parser",
                         [&](const Emit& emit) {
                           emit("a");
                           emit("");
                           emit(big);
                         }),
            "a" + big);
}

TEST(Isolated, LeavesTheParentsMemoryAlone) {
  int value = 1;
  (void)run_isolated("the parser", [&](const Emit&) { value = 2; });
  EXPECT_EQ(value, 1);
}

TEST(Isolated, PassesErrorsOn) {
  EXPECT_EQ(refusal([](const Emit& emit) {
              emit("partial");
              throw Error::input("bad file").hint("throw it away");
            }),
            "bad file|throw it away");
  EXPECT_EQ(refusal([](const Emit&) { throw std::runtime_error("odd"); }), "odd|");
}

TEST(Isolated, SurvivesACrash) {
  EXPECT_EQ(refusal([](const Emit& emit) {
              emit("partial");
              (void)::raise(SIGKILL);
            }),
            "the parser failed (signal 9): damaged file|");
}

}  // namespace
}  // namespace mxfp4
