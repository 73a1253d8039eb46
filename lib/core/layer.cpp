#include "lib/core/layer.hpp"

#include <fmt/format.h>

#include "lib/core/checked.hpp"
#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

constexpr std::array<std::string_view, kAllSlots.size()> kSlotNames = {
    "w13_weight", "w2_weight", "w13_weight_scale", "w2_weight_scale",
    "w13_bias",   "w2_bias",   "w13_input_scale",  "w2_input_scale",
};

}  // namespace

std::string_view slot_name(Slot slot) { return kSlotNames[static_cast<size_t>(slot)]; }

std::optional<Slot> slot_from_name(std::string_view name) {
  for (Slot slot : kAllSlots) {
    if (slot_name(slot) == name) return slot;
  }
  return std::nullopt;
}

bool slot_is_w13(Slot slot) { return slot_name(slot).starts_with("w13"); }

std::string_view w13_order_name(W13Order order) {
  return order == W13Order::kInterleaved ? "interleaved" : "halves";
}

std::optional<W13Order> w13_order_from_name(std::string_view name) {
  for (W13Order order : {W13Order::kInterleaved, W13Order::kHalves}) {
    if (w13_order_name(order) == name) return order;
  }
  return std::nullopt;
}

bool LoadedSpec::has(Slot slot) const {
  switch (slot) {
    case Slot::kW13Bias:
    case Slot::kW2Bias:
      return bias.has_value();
    case Slot::kW13InputScale:
    case Slot::kW2InputScale:
      return input_scales;
    default:
      return true;
  }
}

TensorSpec LoadedSpec::tensor(Slot slot) const {
  const auto [experts, hidden, inter] = dims;
  switch (slot) {
    case Slot::kW13Weight:
      return {DType::kU8, {experts, 2 * inter, hidden / kCodesPerByte}};
    case Slot::kW2Weight:
      return {DType::kU8, {experts, hidden, inter / kCodesPerByte}};
    case Slot::kW13WeightScale:
      return {DType::kU8, {experts, 2 * inter, hidden / kBlock}};
    case Slot::kW2WeightScale:
      return {DType::kU8, {experts, hidden, inter / kBlock}};
    case Slot::kW13Bias:
      return {bias.value(), {experts, 2 * inter}};
    case Slot::kW2Bias:
      return {bias.value(), {experts, hidden}};
    default:
      return {DType::kF32, {experts}};
  }
}

ExpertMatrix LoadedSpec::expert(Slot slot) const {
  const TensorSpec spec = tensor(slot);
  const int64_t rows = spec.shape.rank() > 1 ? spec.shape[1] : 1;
  const int64_t columns = spec.shape.rank() > 2 ? spec.shape[2] : 1;
  return {rows, columns * dtype_bytes(spec.dtype)};
}

void LoadedSpec::check() const {
  const auto [experts, hidden, inter] = dims;
  if (experts < 0 || hidden <= 0 || inter < 0) {
    throw Error::input(
        fmt::format("sizes must be positive: {} experts, hidden size {}, "
                    "intermediate size {}",
                    experts, hidden, inter));
  }
  // Layouts keep a table of rows, so the sizes in a file are limited.
  constexpr int64_t kMost = int64_t{1} << 22;
  if (hidden > kMost || inter > kMost) {
    throw Error::input(fmt::format(
        "hidden size {} and intermediate size {}: at most {} is supported", hidden, inter, kMost));
  }
  if (hidden % kBlock != 0 || inter % kBlock != 0) {
    throw Error::input(
        fmt::format("hidden size {} and intermediate size {} must be multiples of "
                    "the scale block of {}",
                    hidden, inter, kBlock));
  }
  // Four bytes an element bounds every tensor that any layout derives from the layer.
  (void)checked_mul(checked_mul(checked_mul(experts, 8), hidden), checked_mul(inter, 2));
}

}  // namespace mxfp4
