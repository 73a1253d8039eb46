// What convert --include-rest takes from a checkpoint into the model directory around a blob, and
// whether such a directory fits a checkpoint.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "formats/checkpoint/opened_checkpoint.hpp"
#include "formats/conversion/rest_writer.hpp"
#include "formats/conversion/run_limits.hpp"

namespace mxfp4 {

// Plans the model directory around the blob. Its config.json is one that engines without blobs
// refuse. Adds to `warnings` what is left out. Throws Error::input, as find_side_files does.
[[nodiscard]] RestPlan plan_model_directory(const OpenedCheckpoint& checkpoint,
                                            std::vector<std::string>& warnings);

// Compares the files that `manifest` says are in `model_directory` with those that convert makes of
// `input`, by their checksums. Returns the differences in words. Throws Error::input if the input
// itself is damaged.
[[nodiscard]] std::vector<std::string> compare_rest(const OpenedCheckpoint& input,
                                                    const std::filesystem::path& model_directory,
                                                    const Manifest& manifest,
                                                    const RunHooks& hooks);

}  // namespace mxfp4
