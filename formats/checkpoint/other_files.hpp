// Recognises inputs that are not checkpoints but are often given for one: by their first bytes, by
// the names in a directory, or by nothing but the path. The message says what they are and what to
// do instead.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "lib/core/tensor.hpp"

namespace mxfp4 {

// Throws Error::input, with the path and a hint, if the file begins as a Git LFS pointer, a
// GGUF file, an archive as PyTorch writes it or a compressed file.
void refuse_other_file(const std::filesystem::path& path, ConstBytes first_bytes);

// The same for the text of a file whose path is the error's context.
void refuse_other_text(std::string_view text);

// The same for a directory that holds no checkpoint but GGUF files, PyTorch's, or only a
// config.json.
void refuse_other_directory(const std::filesystem::path& directory);

// The same for a directory whose weights are not a checkpoint: a LoRA adapter, or the state that an
// engine saved after its backends had changed the weights. `names`: of its *.safetensors.
void refuse_other_weights(const std::filesystem::path& directory,
                          const std::vector<std::string>& names);

// Throws Error::input, with a hint, if nothing is at the path and it reads like a model's name on a
// hub ("openai/gpt-oss-120b") or like an address.
void refuse_hub_name(const std::filesystem::path& path);

}  // namespace mxfp4
