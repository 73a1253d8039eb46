// A granule is all experts, because the maximum is taken over them.
#include "lib/layouts/input_scales.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

float read_f32(ConstBytes bytes, size_t index) {
  float value = 0;
  std::memcpy(&value, bytes.data() + index * sizeof(value), sizeof(value));
  return value;
}

size_t count_f32(ConstBytes bytes) { return bytes.size() / sizeof(float); }

void maximum(ConstBytes scales, MutableBytes out) {
  float largest = read_f32(scales, 0);
  for (size_t i = 1; i < count_f32(scales); ++i) {
    const float x = read_f32(scales, i);
    if (x > largest || std::isnan(x)) largest = x;
    if (std::isnan(largest)) break;
  }
  std::memcpy(out.data(), &largest, sizeof(largest));
}

void broadcast(ConstBytes scale, MutableBytes out) {
  for (size_t at = 0; at < out.size(); at += sizeof(float)) {
    std::memcpy(out.data() + at, scale.data(), sizeof(float));
  }
}

bool close(float x0, float xi) {
  if (x0 == xi) return true;
  // volatile: the product is rounded before the sum, which a fused multiply-add would not do.
  const volatile float relative = 1e-5F * xi;
  const float difference = std::fabs(x0 - xi);
  return std::isfinite(difference) && difference <= 1e-8F + std::fabs(relative);
}

}  // namespace

void require_input_scales(const LoadedSpec& loaded) {
  if (loaded.input_scales) return;
  throw Error::unsupported(
      "W4A8 (AITER_MXFP4_FP8) requires static input scales, but found w13_input_scale or "
      "w2_input_scale is None.")
      .reference_type("ValueError");
}

Output input_scale_maximum(std::string_view layout_id, const LoadedSpec& loaded, Slot slot) {
  const int64_t experts = loaded.dims.num_experts;
  if (experts == 0) {
    throw Error::unsupported(fmt::format("layout {}: {} needs at least one expert, found none",
                                         layout_id, slot_name(slot)));
  }
  Output output;
  output.name = slot_name(slot);
  output.slot = slot;
  output.spec = {DType::kF32, {}};
  output.program = Program(dtype_bytes(DType::kF32));
  output.experts_per_granule = experts;
  output.combination.emplace(Combination{
      .slots = {slot},
      .out_bytes = dtype_bytes(DType::kF32),
      .forward = [](std::span<const ConstBytes> in, MutableBytes out) { maximum(in[0], out); },
      .inverse_from = {},
      .inverse = [](ConstBytes own, std::span<const ConstBytes>,
                    MutableBytes out) { broadcast(own, out); },
  });
  output.lost = "only the maximum over the experts is kept";
  return output;
}

void append_input_scale_maxima(std::string_view layout_id, const LoadedSpec& loaded,
                               std::vector<Output>& outputs) {
  for (Slot slot : {Slot::kW13InputScale, Slot::kW2InputScale}) {
    outputs.push_back(input_scale_maximum(layout_id, loaded, slot));
  }
}

std::string check_input_scales(const LayoutInput& /*input*/, Slot slot, ConstBytes granule) {
  if (slot != Slot::kW13InputScale && slot != Slot::kW2InputScale) return "";
  for (size_t i = 0; i < count_f32(granule); ++i) {
    if (!close(read_f32(granule, 0), read_f32(granule, i))) {
      return "Found input_scales that are not equal for fp8 MoE layer. Using the maximum across "
             "experts for each layer.";
    }
  }
  return "";
}

}  // namespace mxfp4
