#include "lib/steps/float_recodings.hpp"

#include "lib/core/float_bits.hpp"
#include "lib/steps/element_map.hpp"

namespace mxfp4 {

const Recoding kBf16ToF16 = {
    "bf16 -> f16",
    2,
    2,
    [](ConstBytes in, MutableBytes out) {
      map_elements<uint16_t, uint16_t>(in, out,
                                       [](uint16_t v) { return f16_from_f32(f32_from_bf16(v)); });
    },
    [](ConstBytes in, MutableBytes out) {
      map_elements<uint16_t, uint16_t>(in, out,
                                       [](uint16_t v) { return bf16_from_f32(f32_from_f16(v)); });
    },
};

const Recoding kF32ToBf16 = {
    "f32 -> bf16",
    4,
    2,
    [](ConstBytes in, MutableBytes out) {
      map_elements<uint32_t, uint16_t>(in, out, [](uint32_t v) { return bf16_from_f32(v); });
    },
    [](ConstBytes in, MutableBytes out) {
      map_elements<uint16_t, uint32_t>(in, out, f32_from_bf16);
    },
};

const Recoding kF32ToF16 = {
    "f32 -> f16",
    4,
    2,
    [](ConstBytes in, MutableBytes out) {
      map_elements<uint32_t, uint16_t>(in, out, f16_from_f32);
    },
    [](ConstBytes in, MutableBytes out) {
      map_elements<uint16_t, uint32_t>(in, out, f32_from_f16);
    },
};

}  // namespace mxfp4
