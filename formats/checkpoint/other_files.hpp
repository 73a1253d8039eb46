// Recognises weights that are not a checkpoint but are often given for one. The message says what they
// are and what to do instead.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "lib/core/tensor.hpp"

namespace mxfp4 {

// The number of a file's first bytes that refuse_pointer() needs.
inline constexpr int64_t kTellingBytes = 256;

// Throws Error::input, with the path and a hint, if the file is by its first bytes a Git LFS pointer.
void refuse_pointer(const std::filesystem::path& path, ConstBytes first_bytes);

// The same for weights that are not a checkpoint: a LoRA adapter, or the state that an engine saved
// after its backends had changed the weights. `names`: of the *.safetensors in the directory
// `path`, or of the file `path`.
void refuse_other_weights(const std::filesystem::path& path, const std::vector<std::string>& names);

// Throws Error::input, with a hint, if nothing is at the path and it reads like a model's name on a
// hub: "openai/gpt-oss-120b".
void refuse_hub_name(const std::filesystem::path& path);

}  // namespace mxfp4
