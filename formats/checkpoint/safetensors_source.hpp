// Reads safetensors: one file, or the shards of a checkpoint directory as the reference picks them
// (vLLM a2c8fc6657, model_executor/model_loader/{default_loader,weight_utils}.py).
#pragma once

#include <filesystem>
#include <memory>

#include "formats/source/source.hpp"

namespace mxfp4 {

// One file. It carries no config.json, even if one lies beside it: a shard alone is not the model.
[[nodiscard]] std::unique_ptr<Source> open_safetensors_file(const std::filesystem::path& path);

// A directory. Files: consolidated*.safetensors if there are any, else *.safetensors; of those, if
// there is an index, only the files that it names. All tensors of a chosen file are listed, named
// by the index or not, files in natural order of their names. Reads headers, index and config.json
// only.
[[nodiscard]] std::unique_ptr<Source> open_checkpoint_directory(const std::filesystem::path& dir);

// True if the directory has a *.safetensors file or an index of them.
[[nodiscard]] bool holds_safetensors(const std::filesystem::path& dir);

}  // namespace mxfp4
