// The index of a checkpoint's safetensors files says which file holds which tensor.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace mxfp4 {

// Tensor name -> file name.
using TensorFiles = std::map<std::string, std::string>;

// A larger index is refused.
inline constexpr int64_t kMaxWeightMapBytes = 100'000'000;

// Reads the weight map from the text of an index (model.safetensors.index.json). Its values must be
// plain names of files in the directory. Throws Error::input naming the key.
[[nodiscard]] TensorFiles parse_weight_map(std::string_view text);

}  // namespace mxfp4
