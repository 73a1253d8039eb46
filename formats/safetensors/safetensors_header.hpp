// The header of a safetensors file, read strictly and written deterministically.
//
//   bytes 0..7      N, little-endian
//   bytes 8..8+N-1  a JSON object: tensor name -> {"dtype", "shape", "data_offsets": [begin, end]},
//                   "__metadata__" -> {string: string}
//   then            the data; offsets count from its start and tile it exactly
//
// Source of the rules: safetensors 0.7, safetensors/src/tensor.rs. These are errors too, and occur
// in no sound file: unknown keys of a tensor, names with control characters, and more than
// kMaxSafetensorsMetadata entries of __metadata__.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "lib/core/tensor.hpp"

namespace mxfp4 {

inline constexpr int64_t kSafetensorsLengthBytes = 8;
inline constexpr int64_t kMaxSafetensorsHeader = 100'000'000;
// Entries of __metadata__. An entry of 12 bytes in a header takes about 120 bytes of memory.
inline constexpr int64_t kMaxSafetensorsMetadata = 65'536;
// Alignment of the data in files that this program writes: a page, so that tensors of whole pages
// are aligned in a map.
inline constexpr int64_t kSafetensorsAlignment = 4096;

struct SafetensorsTensor {
  std::string name;
  TensorSpec spec;
  int64_t begin = 0;  // bytes from the start of the data
  int64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsTensor> tensors;  // in the order of their data
  std::map<std::string, std::string> metadata;
  int64_t data_start = 0;  // bytes from the start of the file: 8 + N
};

// Whether a file with these first bytes is a safetensors file, sound or damaged: a length whose
// high bytes are zero, then '{'. A JSON file, being text, has no zero byte.
[[nodiscard]] bool begins_as_safetensors(ConstBytes front);

// `front` holds the first bytes of a file of `file_size` bytes; a header that does not end in them
// is refused. Everything stated above is checked before anything is allocated for it. Throws
// Error::input; the message names the tensor or key, not the file.
[[nodiscard]] SafetensorsHeader parse_safetensors_header(ConstBytes front, int64_t file_size);

// Appends a tensor whose data follows the last tensor's.
void append_tensor(std::vector<SafetensorsTensor>& tensors, std::string name, TensorSpec spec);

// The length and the JSON, which ends in spaces so that the data starts at a multiple of `align`.
// Tensors must be in the order of their data, without gaps, as append_tensor places them. The same
// arguments give the same bytes. Throws Error::internal for a header that no reader would accept.
[[nodiscard]] std::string make_safetensors_header(
    std::span<const SafetensorsTensor> tensors, const std::map<std::string, std::string>& metadata,
    int64_t align);

}  // namespace mxfp4
