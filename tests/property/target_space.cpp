#include "tests/property/target_space.hpp"

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"
#include "lib/layouts/knobs.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4::test {
namespace {

struct Machine {
  Platform platform;
  std::string_view arch;
};

constexpr Machine kMachines[] = {
    {Platform::kCuda, "sm90"},   {Platform::kCuda, "sm100"},   {Platform::kCuda, "sm103"},
    {Platform::kCuda, "sm120"},  {Platform::kCuda, "sm89"},    {Platform::kCuda, "sm80"},
    {Platform::kCuda, "sm75"},   {Platform::kCuda, "sm70"},    {Platform::kRocm, "gfx950"},
    {Platform::kRocm, "gfx942"}, {Platform::kRocm, "gfx1250"}, {Platform::kXpu, ""},
    {Platform::kCpu, "x86_64"},  {Platform::kCpu, "aarch64"},  {Platform::kCuda, ""},
};

// Each changes one thing; an empty one changes nothing.
using Change = std::function<void(Target&)>;

Change knob(const char* name, const char* value) {
  return [=](Target& target) { target.knobs[name] = value; };
}

Change humming_16bit(const std::map<std::string, std::string>& knobs) {
  return [=](Target& target) {
    target.knobs = knobs;
    target.knobs["humming_input_dtype"] = "none";
  };
}

const std::vector<Change>& changes() {
  static const std::vector<Change> kChanges = {
      knob("params_dtype", "float16"),
      knob("marlin_input_dtype", "fp8"),
      knob("marlin_input_dtype", "int8"),
      knob("humming_input_dtype", "none"),
      humming_16bit({{"cuda_compiler", "13.1"}}),
      humming_16bit({{"cuda_compiler", "13.2"}}),
      humming_16bit({{"params_dtype", "float16"}}),
      humming_16bit({{"params_dtype", "float16"}, {"cuda_compiler", "12.6"}}),
      humming_16bit({{"params_dtype", "float16"}, {"cuda_compiler", "12.7"}}),
      knob("humming_input_dtype", "float8e4m3"),
      knob("humming_input_dtype", "float8e4m3-group32"),
      knob("humming_input_dtype", "float8e4m3-group64"),
      knob("humming_input_dtype", "float8e4m3-group128"),
      knob("humming_input_dtype", "int8"),
      knob("humming_input_dtype", "float4e2m1"),
      knob("humming_input_dtype", "fp8_per_tensor_static"),
      knob("humming_input_dtype", "int4_per_group_32"),
      knob("aiter_weight", "int4"),
      [](Target& target) { target.world_size = 4; },
      [](Target& target) { target.activation = "silu"; },
      [](Target& target) { target.activation = "situ"; },
      [](Target& target) { target.activation = "swigluoai"; },
      [](Target& target) {
        target.activation = "situ";
        target.env = {{"VLLM_ROCM_USE_AITER_MOE_SITUV2_A8W4", "1"},
                      {"VLLM_ROCM_USE_AITER_MOE_SITUV2", "a8w4"},
                      {"AITER_SITUV2_A8W4", "1"},
                      {"VLLM_ROCM_USE_AITER", "1"}};
      },
      [](Target& target) {
        target.env = {{"VLLM_ROCM_USE_AITER_MOE_A4W4_DSV4", "1"}, {"VLLM_ROCM_USE_AITER", "1"}};
      },
      [](Target& target) {
        target.env = {{"SGLANG_USE_AITER_MOE_GU_ITLV", "0"}};
      },
      [](Target& target) {
        target.env = {{"SGLANG_MXFP4_USE_OFFICIAL_SHUFFLE", "0"}, {"AITER_FORCE_A8W4", "1"}};
      },
      [](Target& target) {
        target.activation = "situ";
        target.env = {{"AITER_SITUV2_A4W4", "1"}};
      },
  };
  return kChanges;
}

}  // namespace

const LayoutRow* row_of(const RuleSet& rules, const Target& target) {
  try {
    return find_layout_row(rules, target);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kUsage) throw;
    return nullptr;
  }
}

std::vector<Target> targets_of(Backend backend, Family family, bool knobs) {
  std::vector<Target> targets;
  for (const Machine& machine : kMachines) {
    Target target;
    target.backend = backend;
    target.family = family;
    target.platform = machine.platform;
    target.arch = machine.arch;
    targets.push_back(target);
    if (!knobs) continue;
    for (const Change& change : changes()) {
      Target changed = target;
      change(changed);
      targets.push_back(changed);
    }
  }
  return targets;
}

std::optional<LayoutInput> first_input_of(const RuleSet& rules, const LayoutRow& row,
                                          const LayerDims& sizes) {
  for (Family family : {Family::kGptOss, Family::kGeneric}) {
    if (row.family && *row.family != family) continue;
    for (const Target& target : targets_of(row.backend, family, true)) {
      for (const std::optional<DType> bias :
           {std::optional(DType::kBF16), std::optional<DType>()}) {
        try {
          if (find_layout_row(rules, target) != &row) continue;
          LayoutInput input;
          input.parameters = layout_parameters(target);
          input.loaded.dims = round_up_sizes(rules, target, sizes);
          input.loaded.bias = bias;
          input.loaded.input_scales = true;
          (void)make_outputs(*row.layout, input);
          return input;
        } catch (
            const Error&) {  // a fact that this row does not need is missing, sizes do not fit,
        }                    // or biases do not
      }
    }
  }
  return std::nullopt;
}

std::map<const Layout*, LayoutInput> inputs_of(const LayerDims& sizes) {
  std::map<const Layout*, LayoutInput> inputs;
  for (const RuleSet* rules : all_revisions()) {
    for (const LayoutRow& row : rules->layouts) {
      if (row.layout == nullptr || inputs.contains(row.layout)) continue;
      if (const auto input = first_input_of(*rules, row, sizes)) inputs.emplace(row.layout, *input);
    }
  }
  return inputs;
}

}  // namespace mxfp4::test
