// What convert --include-rest takes from a checkpoint into the model directory around a blob.
#pragma once

#include <string>
#include <vector>

#include "formats/conversion/rest_writer.hpp"
#include "formats/decision/opened_checkpoint.hpp"

namespace mxfp4 {

// Plans the model directory around the blob. Its config.json is one that engines without blobs
// refuse. Adds to `warnings` what is left out. Throws Error::input, as find_side_files does.
[[nodiscard]] RestPlan plan_model_directory(const OpenedCheckpoint& checkpoint,
                                            std::vector<std::string>& warnings);

}  // namespace mxfp4
