#include "lib/steps/recodings.hpp"

#include "lib/steps/element_map.hpp"

namespace mxfp4 {

const Recoding kWidenBf16ToF32 = {
    "bf16 -> f32",
    2,
    4,
    [](ConstBytes in, MutableBytes out) {
      map_elements<uint16_t, uint32_t>(in, out, [](uint16_t v) { return uint32_t{v} << 16; });
    },
    [](ConstBytes in, MutableBytes out) {
      map_elements<uint32_t, uint16_t>(in, out,
                                       [](uint32_t v) { return static_cast<uint16_t>(v >> 16); });
    },
};

const Recoding kE8m0ToF32 = {
    "e8m0 -> f32",
    1,
    4,
    [](ConstBytes in, MutableBytes out) {
      map_elements<uint8_t, uint32_t>(in, out, [](uint8_t v) { return uint32_t{v} << 23; });
    },
    [](ConstBytes in, MutableBytes out) {
      map_elements<uint32_t, uint8_t>(in, out,
                                      [](uint32_t v) { return static_cast<uint8_t>(v >> 23); });
    },
};

}  // namespace mxfp4
