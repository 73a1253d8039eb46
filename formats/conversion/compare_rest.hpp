// Decides whether the files around a blob are those that convert --include-rest makes of a
// checkpoint, by the same plan.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "formats/blob/manifest.hpp"
#include "formats/conversion/run_limits.hpp"
#include "formats/decision/opened_checkpoint.hpp"

namespace mxfp4 {

// Compares the files that `manifest` names in `model_directory` with `source`, which was opened for
// options.path: names and tensors first, then every byte, in bounded memory. Call it after
// check_rest_files found nothing. Returns the differences in words. Throws Error::input if the
// input itself is damaged.
[[nodiscard]] std::vector<std::string> compare_rest(const std::shared_ptr<Source>& source,
                                                    CheckpointOptions options,
                                                    const std::filesystem::path& model_directory,
                                                    const Manifest& manifest,
                                                    const RunHooks& hooks);

}  // namespace mxfp4
