#include "formats/output/unfinished.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <system_error>
#include <vector>

#include "formats/blob/blob_reader.hpp"
#include "formats/blob/journal.hpp"
#include "formats/output/observe.hpp"
#include "formats/output/sibling.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {

namespace fs = std::filesystem;

std::string shards_text(const std::vector<JournalContent>& journals) {
  return fmt::format("{} of {} shards are complete",
                     std::ranges::count(journals, true, &JournalContent::ready),
                     journals.front().shard->count);
}

void refuse_unfinished(const fs::path& path) {
  std::error_code ignored;
  const bool far = is_address(path);  // object storage has the journal in OUT
  if (far ? !path.string().starts_with("s3://")
          : fs::exists(path, ignored) && !fs::is_empty(path, ignored)) {
    return;
  }
  std::vector<JournalContent> journals;
  try {
    journals = read_journals(sibling_of(path));
  } catch (const Error&) {
    if (far) throw;
    return;  // whoever opens `path` says why
  }
  if (journals.empty()) return;
  const JournalContent& first = journals.front();
  const std::string how_far = first.shard
                                  ? shards_text(journals)
                                  : fmt::format("{} of {} layer files are complete",
                                                finished_layers(first), layer_files(first.planned));
  throw Error::input(fmt::format("unfinished: {}", how_far))
      .in_file(path.string())
      .hint(first.shard ? "convert --shard for the others, then finalize"
                        : "convert with the same flags and --resume goes on");
}

}  // namespace mxfp4
