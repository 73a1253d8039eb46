// One MoE layer in the loaded layout: what vLLM's layer holds after its weights were loaded, sliced
// and padded, and before a backend's pass runs (vLLM a2c8fc6657,
// vllm/model_executor/layers/quantization/mxfp4.py, create_weights).
//
//   w13_weight        U8   [E, 2I, H/2]   two e2m1 codes a byte, even element in the low nibble
//   w2_weight         U8   [E, H, I/2]
//   w13_weight_scale  U8   [E, 2I, H/32]  e8m0
//   w2_weight_scale   U8   [E, H, I/32]
//   w13_bias          BF16 [E, 2I]        optional, both biases or neither; F32 for Quark
//   w2_bias           BF16 [E, H]
//   w13_input_scale, w2_input_scale       F32 [E], optional
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "lib/core/tensor.hpp"

namespace mxfp4 {

enum class Slot : uint8_t {
  kW13Weight,
  kW2Weight,
  kW13WeightScale,
  kW2WeightScale,
  kW13Bias,
  kW2Bias,
  kW13InputScale,
  kW2InputScale,
};

inline constexpr std::array kAllSlots = {
    Slot::kW13Weight, Slot::kW2Weight, Slot::kW13WeightScale, Slot::kW2WeightScale,
    Slot::kW13Bias,   Slot::kW2Bias,   Slot::kW13InputScale,  Slot::kW2InputScale,
};

[[nodiscard]] std::string_view slot_name(Slot slot);  // "w13_weight"
[[nodiscard]] std::optional<Slot> slot_from_name(std::string_view name);
[[nodiscard]] bool slot_is_w13(Slot slot);

// How weights are quantized. MXFP4 is the only format today; CONTRIBUTING says what a second one touches.
struct WeightFormat {
  std::string_view name;
  int64_t codes_per_byte = 0;
  int64_t block = 0;  // codes of one block scale
  std::string_view scale;
  friend bool operator==(const WeightFormat&, const WeightFormat&) = default;
};
inline constexpr WeightFormat kMxfp4Format{"mxfp4", 2, 32, "e8m0"};

inline constexpr int64_t kBlock = kMxfp4Format.block;
inline constexpr int64_t kCodesPerByte = kMxfp4Format.codes_per_byte;

// The layout id of a blob that stops at the loaded layout (--emit loaded).
inline constexpr std::string_view kLoadedLayoutId = "loaded";

struct LayerDims {
  int64_t num_experts = 0;        // E, on this rank
  int64_t hidden_size = 0;        // H
  int64_t intermediate_size = 0;  // I, on this rank
  friend bool operator==(const LayerDims&, const LayerDims&) = default;
};

// Row order of the w13 tensors: gate 0, up 0, gate 1, up 1, ... or all gate rows then all up rows.
enum class W13Order : uint8_t { kInterleaved, kHalves };
[[nodiscard]] std::string_view w13_order_name(W13Order order);  // "interleaved", "halves"
[[nodiscard]] std::optional<W13Order> w13_order_from_name(std::string_view name);

// One expert's share of a slot as a matrix of bytes. A bias is a column of rows x 1 element, an
// input scale a single element.
struct ExpertMatrix {
  int64_t rows = 0;
  int64_t row_bytes = 0;
  [[nodiscard]] int64_t bytes() const { return rows * row_bytes; }
};

// Which tensors a loaded layer has, and their sizes.
struct LoadedSpec {
  LayerDims dims;
  std::optional<DType> bias;  // kBF16 or kF32; empty: no biases
  bool input_scales = false;

  [[nodiscard]] bool has(Slot slot) const;
  // Shape and dtype of the whole slot, as in the table above. Requires has(slot).
  [[nodiscard]] TensorSpec tensor(Slot slot) const;
  [[nodiscard]] ExpertMatrix expert(Slot slot) const;
  // Throws Error::input when E or I is negative, H is not positive, H or I is larger than 2^22 or
  // not a multiple of 32, or a tensor's size overflows. E = 0 (an empty rank) and I = 0 are legal.
  void check() const;
};

}  // namespace mxfp4
