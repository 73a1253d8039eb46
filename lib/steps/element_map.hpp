// The loop that recodings are made of.
#pragma once

#include <cstring>

#include "lib/core/tensor.hpp"

namespace mxfp4 {

// out[i] = map(in[i]) over all elements of `in`; neither buffer need be aligned.
template <class From, class To, class Map>
void map_elements(ConstBytes in, MutableBytes out, Map map) {
  for (size_t i = 0; i < in.size() / sizeof(From); ++i) {
    From from;
    std::memcpy(&from, in.data() + i * sizeof(From), sizeof(From));
    const To to = map(from);
    std::memcpy(out.data() + i * sizeof(To), &to, sizeof(To));
  }
}

}  // namespace mxfp4
