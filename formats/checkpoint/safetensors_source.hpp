// Reads safetensors: one file, or those files of a checkpoint directory that the reference reads
// (vLLM a2c8fc6657, model_executor/model_loader/{default_loader,weight_utils}.py).
#pragma once

#include <filesystem>
#include <memory>

#include "formats/checkpoint/positioned_source.hpp"

namespace mxfp4 {

// Opens one file, and the config.json beside it if there is one; or a directory: the files that its
// index names; without an index all consolidated*.safetensors, or if there are none, all
// *.safetensors. (Beside consolidated files, the index names them.) Lists all tensors of the files,
// whether or not the index names them, files in the natural order of their names. Reads only headers,
// index and config.json. Throws Error::input, also for a container of another kind.
[[nodiscard]] std::unique_ptr<PositionedSource> open_safetensors(const std::filesystem::path& path);

// Whether the directory has a *.safetensors file or a model.safetensors.index.json.
[[nodiscard]] bool holds_safetensors(const std::filesystem::path& dir);

}  // namespace mxfp4
