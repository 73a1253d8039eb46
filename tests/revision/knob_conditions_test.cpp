// Which layout or refusal the reference revision's table gives for the knobs of MARLIN, HUMMING and
// CPU.
#include "lib/revisions/knob_conditions.hpp"

#include <gtest/gtest.h>

#include "lib/core/error.hpp"
#include "lib/layouts/output.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

struct Knob {
  const char* name;
  const char* value;
};

// The row's layout id, or its refusal's type and text.
std::string row_text(const LayoutRow* found) {
  if (found == nullptr) return "no row";
  if (found->layout != nullptr) return std::string(id_of(*found->layout));
  return std::string(found->refusal_type) + ": " + std::string(found->refusal);
}

// Of the reference revision.
std::string row(Backend backend, Family family, const char* arch,
                const std::vector<Knob>& knobs = {}, const std::vector<Knob>& env = {}) {
  Target target;
  target.backend = backend;
  target.family = family;
  target.arch = arch;
  for (const Knob& knob : knobs) target.knobs[knob.name] = knob.value;
  for (const Knob& variable : env) target.env[variable.name] = variable.value;
  return row_text(find_layout_row(revision_by_name("vllm-2026-05-18"), target));
}

// The same for HUMMING in a release; the type of activations is given.
std::string humming_row(const char* release, const char* arch, const char* type,
                        const std::vector<Knob>& knobs = {}) {
  Target target;
  target.backend = Backend::HUMMING;
  target.platform = Platform::kCuda;
  target.arch = arch;
  for (const Knob& knob : knobs) target.knobs[knob.name] = knob.value;
  target.knobs["humming_input_dtype"] = type;
  return row_text(find_layout_row(revision_by_name(release), target));
}

TEST(KnobConditions, MarlinByActivationDtype) {
  for (Backend backend : {Backend::MARLIN, Backend::BATCHED_MARLIN}) {
    for (Family family : {Family::kGptOss, Family::kGeneric}) {
      EXPECT_EQ(row(backend, family, "sm90"), "marlin/w4a16");
      EXPECT_EQ(row(backend, family, ""), "marlin/w4a16");
      EXPECT_EQ(row(backend, family, "sm90", {{"marlin_input_dtype", "none"}}), "marlin/w4a16");
      for (const char* arch : {"sm89", "sm120", "sm121", ""}) {
        EXPECT_EQ(row(backend, family, arch, {{"marlin_input_dtype", "fp8"}}), "marlin/w4a8-fp8");
      }
      EXPECT_EQ(row(backend, family, "sm90", {{"marlin_input_dtype", "fp8"}}),
                "ValueError: Marlin with fp8 activations supports sm89 and sm12x only");
      EXPECT_EQ(row(backend, family, "sm89", {{"marlin_input_dtype", "int8"}}),
                "RuntimeError: MXFP4 weight + INT8 activation is not supported.");
    }
  }
}

TEST(KnobConditions, MarlinReadsTheServingEnvironment) {
  const std::vector<Knob> env = {{"VLLM_MARLIN_INPUT_DTYPE", "fp8"}};
  EXPECT_EQ(row(Backend::MARLIN, Family::kGptOss, "sm89", {}, env), "marlin/w4a8-fp8");
  EXPECT_EQ(row(Backend::MARLIN, Family::kGptOss, "sm89", {{"marlin_input_dtype", "none"}}, env),
            "marlin/w4a16");
  EXPECT_THROW(
      row(Backend::MARLIN, Family::kGptOss, "sm89", {}, {{"VLLM_MARLIN_INPUT_DTYPE", "bf16"}}),
      Error);
}

TEST(KnobConditions, HummingByCudaCompiler) {
  const auto with = [](const char* version, std::vector<Knob> more = {}) {
    more.push_back({"cuda_compiler", version});
    return more;
  };
  const std::vector<Knob> half = {{"params_dtype", "float16"}};
  for (const char* release : {"0.31.0", "0.32.0", "0.33.0"}) {
    EXPECT_EQ(humming_row(release, "sm100", "none", with("13.1")), "humming/mma");
    EXPECT_EQ(humming_row(release, "sm120", "none", with("13.2")), "humming/mma-native");
    EXPECT_EQ(humming_row(release, "sm110", "none", with("14.0")), "humming/mma-native");
    EXPECT_EQ(humming_row(release, "sm89", "none", with("13.2")), "humming/mma");
    EXPECT_TRUE(humming_row(release, "sm100", "none").starts_with(": from capability 10.0 on"));
  }
  EXPECT_EQ(humming_row("0.31.0", "sm100", "none", with("12.7", half)), "humming/mma-native");
  EXPECT_EQ(humming_row("0.33.0", "sm100", "none", with("12.7", half)), "humming/mma-native-fp16");
  EXPECT_EQ(humming_row("0.33.0", "sm100", "none", with("12.6", half)), "humming/mma-fp16");
  EXPECT_EQ(humming_row("0.33.0", "sm75", "none", half), "humming/mma-fp16");
  EXPECT_EQ(humming_row("0.30.0", "sm100", "none"), "humming/mma");
}

TEST(KnobConditions, HummingByItsKernelsVersion) {
  EXPECT_EQ(humming_row("0.27.1", "sm90", "none"), "humming/wgmma");
  EXPECT_EQ(humming_row("0.31.0", "sm90", "none"), "humming/wgmma");
  EXPECT_EQ(humming_row("0.32.0", "sm90", "none"), "humming/mma");
  EXPECT_EQ(humming_row("0.23.0", "sm120", "float8e4m3"), "humming/fp8-global");
  EXPECT_EQ(humming_row("0.28.0", "sm100", "float8e4m3"), "humming/fp8");
  EXPECT_EQ(humming_row("0.28.0", "sm120", "float8e4m3-group32"), "humming/mxmma-fp8");
  for (const char* type : {"float8e4m3-group64", "float8e4m3-group128"}) {
    EXPECT_EQ(humming_row("0.28.0", "sm120", type), "humming/fp8");
  }
  EXPECT_EQ(humming_row("0.33.0", "sm90", "float8e4m3-group64"),
            "ValueError: Humming has no such activations for MXFP4 weights: loading stops with "
            "ValueError");
  EXPECT_EQ(humming_row("0.31.0", "sm120", "float4e2m1"), "humming/mxmma-fp4-tiles");
  EXPECT_EQ(humming_row("0.31.0", "sm90", "float8e4m3-group128"),
            "ValueError: this Humming has no FP8 activations with F32 scales by group for MXFP4 "
            "weights: loading stops with ValueError");
  EXPECT_EQ(humming_row("0.25.0", "sm90", "int8"),
            "NotImplementedError: this Humming has no INT8 activations for MXFP4 weights: its "
            "kernel stops with NotImplementedError");
}

TEST(KnobConditions, HummingByArchAndActivationDtype) {
  for (Family family : {Family::kGptOss, Family::kGeneric}) {
    EXPECT_EQ(row(Backend::HUMMING, family, "sm90"), "humming/wgmma");
    for (const char* arch : {"sm80", "sm89", "sm100", "sm120"}) {
      EXPECT_EQ(row(Backend::HUMMING, family, arch), "humming/mma");
    }
    for (const char* dtype : {"float8e4m3", "int8"}) {
      EXPECT_EQ(row(Backend::HUMMING, family, "sm90", {{"humming_input_dtype", dtype}}),
                "humming/w4a8");
      EXPECT_EQ(row(Backend::HUMMING, family, "", {{"humming_input_dtype", dtype}}),
                "humming/w4a8");
    }
  }
}

void expect_usage_error(Backend backend, const char* arch, std::vector<Knob> knobs,
                        std::vector<Knob> env, const char* text) {
  try {
    row(backend, Family::kGptOss, arch, std::move(knobs), std::move(env));
    ADD_FAILURE() << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_STREQ(error.what(), text);
  }
}

TEST(KnobConditions, UnknownValuesAreUsageErrors) {
  expect_usage_error(Backend::MARLIN, "sm90", {{"marlin_input_dtype", "int4"}}, {},
                     "knob marlin_input_dtype: expected none, fp8 or int8, found 'int4'");
  expect_usage_error(
      Backend::HUMMING, "sm90", {{"humming_input_dtype", "float8e5m2"}}, {},
      "knob humming_input_dtype: expected none, float8e4m3 or int8, found 'float8e5m2'");
  expect_usage_error(Backend::HUMMING, "sm90", {},
                     {{"VLLM_HUMMING_INPUT_QUANT_CONFIG", R"({"dtype": "int8"})"}},
                     "VLLM_HUMMING_INPUT_QUANT_CONFIG changes the packed bytes: say its dtype as "
                     "knob humming_input_dtype");
  expect_usage_error(Backend::HUMMING, "", {}, {},
                     "HUMMING's layout depends on the CUDA architecture: expected an arch such as "
                     "sm90, found ''");
}

TEST(KnobConditions, CpuIsX86AndGptOssOnly) {
  EXPECT_EQ(row(Backend::CPU, Family::kGptOss, "x86_64"), "cpu/vnni32");
  EXPECT_EQ(row(Backend::CPU, Family::kGptOss, ""), "cpu/vnni32");
  EXPECT_EQ(row(Backend::CPU, Family::kGptOss, "aarch64"),
            ": the CPU backend's packing operators exist only in x86_64 builds with AVX-512 BF16");
  EXPECT_EQ(row(Backend::CPU, Family::kGeneric, "x86_64"),
            "ValueError: Unsupported mxfp4_backend for Mxfp4MoEMethod: Mxfp4MoeBackend.CPU. "
            "Expected TRTLLM, Triton, or AITER backend.");
}

}  // namespace
}  // namespace mxfp4
