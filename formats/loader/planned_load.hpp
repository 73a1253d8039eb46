// What a checkpoint's loader makes, planned: the one place of this room that asks the rules.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "formats/blob/manifest.hpp"
#include "formats/checkpoint/opened_checkpoint.hpp"
#include "formats/checkpoint/positioned_source.hpp"

namespace mxfp4 {

struct PlannedLoad {
  std::shared_ptr<PositionedSource> source;  // made.input.source
  PlannedCheckpoint made;
  Manifest manifest;  // of plain files: what is made is not compressed
};

// `conversion`: the text of one rank's manifest, as a blob has it; the text need not have a seal. Checksums of tensors that it states are those that verify
// compares. Throws Error::input naming file and key; for a checkpoint from which the manifest's
// layers do not follow, with the first difference.
[[nodiscard]] PlannedLoad plan_load(const std::filesystem::path& checkpoint,
                                    std::string_view conversion);

// For a deployment, the text of a request (request_json.hpp), which is decided here. Throws what
// parse_checkpoint_request, decide_conversion and plan_repack throw, and the refusal.
[[nodiscard]] PlannedLoad plan_load_for(const std::filesystem::path& checkpoint,
                                        std::string_view deployment);

// Throws InputFault (kMismatch) unless the experts of `conversion`, a blob's manifest, were made
// from `checkpoint`, by samples: see formats/conversion/source_sample.hpp.
void require_same_checkpoint(const std::filesystem::path& checkpoint, std::string_view conversion);

}  // namespace mxfp4
