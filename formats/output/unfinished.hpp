// Refuses an incomplete result that a command is given to read.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "formats/blob/journal.hpp"

namespace mxfp4 {

// Throws Error::input, with a hint, if nothing is at `path` but a conversion into it has begun, or
// shards of it that were not finalized.
void refuse_unfinished(const std::filesystem::path& path);

// "2 of 4 shards are complete".
[[nodiscard]] std::string shards_text(const std::vector<JournalContent>& journals);

}  // namespace mxfp4
