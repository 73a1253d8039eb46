// A config.json without weights, opened as a checkpoint: the same questions get the same answers,
// as far as a config can tell.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "formats/source/source.hpp"

namespace mxfp4 {

// The kind of such a source.
inline constexpr std::string_view kConfigKind = "config";

// The config that `path` stands for if there are no weights: a config.json (by content, whatever
// its name is), or a directory that holds one and no checkpoint. Empty for anything else.
[[nodiscard]] std::optional<std::filesystem::path> config_without_weights(
    const std::filesystem::path& path);

// A source of the tensors that the model has by its config; it has no data. `file` is for
// messages, and the source's only file if it exists. Throws Error::input naming file and key.
[[nodiscard]] std::shared_ptr<Source> open_config(const std::string& text,
                                                  const std::filesystem::path& file);

}  // namespace mxfp4
