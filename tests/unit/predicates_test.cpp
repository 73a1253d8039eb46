// Names of devices and values of variables as the reference reads them.
#include "lib/oracle/predicates.hpp"

#include <gtest/gtest.h>

#include "lib/core/error.hpp"
#include "lib/oracle/python_text.hpp"
#include "lib/oracle/select.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

Deployment cuda(std::string arch) {
  Deployment d;
  d.platform = Platform::kCuda;
  d.arch = std::move(arch);
  return d;
}

bool ask(const Condition& condition, const Deployment& deployment) {
  return condition.holds(make_question(revision_by_name("vllm-2026-05-18"), deployment));
}

Deployment with_env(std::string name, std::string value) {
  Deployment d = cuda("sm90");
  d.env[std::move(name)] = std::move(value);
  return d;
}

TEST(Predicates, CapabilityOfCudaAndRocmNames) {
  using C = std::optional<Capability>;
  EXPECT_EQ(device_capability(Platform::kCuda, "sm75"), (C{{7, 5}}));
  EXPECT_EQ(device_capability(Platform::kCuda, "sm121"), (C{{12, 1}}));
  EXPECT_EQ(device_capability(Platform::kRocm, "gfx90a"), (C{{9, 0}}));
  EXPECT_EQ(device_capability(Platform::kRocm, "gfx942:sramecc+:xnack-"), (C{{9, 4}}));
  EXPECT_EQ(device_capability(Platform::kRocm, "gfx1030"), (C{{10, 3}}));
  EXPECT_EQ(device_capability(Platform::kRocm, "gfx1201"), (C{{12, 0}}));
  EXPECT_EQ(device_capability(Platform::kXpu, "whatever"), C{});
  for (const char* bad : {"", "sm", "sm9", "90", "sm90a", "gfx950", "sm-90", "sm99999999999"}) {
    EXPECT_THROW((void)device_capability(Platform::kCuda, bad), Error) << bad;
  }
  for (const char* bad : {"", "gfx", "gfx9", "gfx803", "gfx12345", "gfx1300", "sm90"}) {
    EXPECT_THROW((void)device_capability(Platform::kRocm, bad), Error) << bad;
  }
}

TEST(Predicates, SwitchesAndNumbersFromTheEnvironment) {
  for (const char* on : {"1", "true", "True", "TRUE"}) {
    EXPECT_TRUE(ask(env_switch("S", false), with_env("S", on))) << on;
  }
  for (const char* off : {"0", "", "yes", "on", " 1"}) {
    EXPECT_FALSE(ask(env_switch("S", true), with_env("S", off))) << off;
  }
  EXPECT_TRUE(ask(env_switch("S", true), cuda("sm90")));
  EXPECT_TRUE(ask(env_number("N", true), cuda("sm90")));
  EXPECT_FALSE(ask(env_number("N", true), with_env("N", "0")));
  EXPECT_TRUE(ask(env_is_one_of("T", {"grouped"}), with_env("T", "Grouped")));
  EXPECT_FALSE(ask(env_is_one_of("T", {"grouped"}), cuda("sm90")));
}

TEST(Predicates, PythonIntegers) {
  for (const char* yes : {"1", " 2\n", "-1", "+7", "1_000", "007", "99999999999999999999999"}) {
    EXPECT_TRUE(python_int_is_nonzero(yes)) << yes;
  }
  for (const char* no : {"0", "-0", "00", "0_0", "\t0 "}) {
    EXPECT_FALSE(python_int_is_nonzero(no)) << no;
  }
  for (const char* bad :
       {"", " ", "x", "true", "1.0", "0x1", "_1", "1_", "1__0", "+", "- 1", "1 2"}) {
    EXPECT_THROW((void)python_int_is_nonzero(bad), Error) << bad;
  }
  try {
    (void)python_int_is_nonzero("it's");
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "invalid literal for int() with base 10: \"it's\"");
    EXPECT_EQ(error.reference_type_name(), "ValueError");
  }
}

TEST(Predicates, MalformedNumberStopsTheOracleWhereTheReferenceReadsIt) {
  Deployment d = with_env("VLLM_BATCH_INVARIANT", "maybe");
  d.libs = {"triton_kernels"};
  const Decision decision = select_backend(revision_by_name("vllm-2026-05-18"), d);
  EXPECT_FALSE(decision.backend);
  EXPECT_EQ(decision.error_type, "ValueError");
  EXPECT_EQ(decision.error_message, "invalid literal for int() with base 10: 'maybe'");
  EXPECT_FALSE(decision.trace.empty());  // classes rejected before the variable is read
}

TEST(Predicates, UnknownNamesAreInputErrors) {
  const auto refused = [](auto&& change) {
    Deployment d = cuda("sm90");
    change(d);
    try {
      (void)select_backend(revision_by_name("vllm-2026-05-18"), d);
    } catch (const Error& error) {
      return std::string(error.what()).substr(0, 40);
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refused([](Deployment& d) { d.activation = "swish"; }),
            "activation: unknown name 'swish'; known:");
  EXPECT_EQ(refused([](Deployment& d) { d.routing_method = "Best"; }),
            "routing_method: unknown name 'Best'; kno");
  EXPECT_EQ(refused([](Deployment& d) { d.activation_override = "bf16"; }),
            "activation_override: unknown name 'bf16'");
  EXPECT_EQ(refused([](Deployment& d) { d.model_activation = ""; }),
            "model_activation: unknown name ''; known");
  EXPECT_EQ(refused([](Deployment& d) { d.parallel.all2all_backend = "smoke"; }),
            "all2all_backend: unknown name 'smoke'; k");
  EXPECT_EQ(refused([](Deployment& d) { d.parallel.tp_size = 0; }),
            "parallel sizes must be at least 1: tp 0,");
  EXPECT_NE(refused([](Deployment& d) { d.parallel.tp_size = d.parallel.dp_size = INT64_MAX; }),
            "accepted");
}

TEST(Predicates, TextsAreFilledOnce) {
  Deployment d = cuda("sm90");
  d.moe_backend = "{device}";
  const Question q = make_question(revision_by_name("vllm-2026-05-18"), d);
  EXPECT_EQ(fill_text("<{moe_backend}> {device} {x}", q, {{"x", "{y}"}}), "<{device}> cuda {y}");
  EXPECT_THROW((void)fill_text("{nobody}", q), Error);
  EXPECT_EQ(python_list({"a", "it's"}), "['a', \"it's\"]");
  EXPECT_EQ(python_repr("a'\"\n\\\x01"), R"('a\'"\n\\\x01')");
}

}  // namespace
}  // namespace mxfp4
