// The index of a checkpoint's safetensors files: which file holds which tensor.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace mxfp4 {

// Tensor name -> file name.
using TensorFiles = std::map<std::string, std::string>;

// A checkpoint's index is not read beyond that.
inline constexpr int64_t kMaxWeightMapBytes = 100'000'000;

// The text of an index (model.safetensors.index.json): its weight map, whose values are plain names
// of files in the directory. Throws Error::input naming the key.
[[nodiscard]] TensorFiles parse_weight_map(std::string_view text);

}  // namespace mxfp4
