// Looks at OUT and at what lies beside it, and says what is there: one value, from which
// states.hpp's table gives the answer. Nothing here changes anything.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "formats/blob/journal.hpp"
#include "formats/blob/manifest.hpp"
#include "formats/output/sibling.hpp"
#include "formats/output/states.hpp"
#include "lib/plan/shard.hpp"

namespace mxfp4 {

// What a run would write. Without `planned` (unpack) no result is the run's own.
struct Wanted {
  std::vector<Manifest> planned{};  // without what depends on the data; one a rank
  bool include_rest = false;        // OUT is a model directory, the blob a folder in it
  std::optional<Shard> shard{};
  std::string plan{};   // identity
  SourceSeen source{};  // the input
};

struct Seen {
  There there = There::kNothing;
  There in_out = There::kNothing;       // without regard to what lies beside
  Named named{};                        // what a refusal names
  std::optional<Error> cause{};         // why a manifest cannot be read
  std::vector<Manifest> ranks{};        // in OUT: complete ranks of this conversion
  std::vector<Manifest> other_ranks{};  // complete ones that --rank leaves out
  JournalContent journal{};             // the unfinished run's, of this conversion or shard
  bool over = false;                    // what lies beside OUT is of a run that has ended
  bool others = false;                  // what lies beside OUT is of another conversion
  bool occupied = false;                // OUT holds something
  std::string lost_rank{};              // a rank that a replacement would not make again
  std::string holds = "nothing";        // "a complete result of 36 layer files", ...
};

[[nodiscard]] Seen observe(const Sibling& sibling, const Wanted& wanted);

// The directory of a conversion's blob.
[[nodiscard]] std::filesystem::path blob_place(const std::filesystem::path& home,
                                               bool include_rest);
// How many layer files the journal names.
[[nodiscard]] int64_t finished_layers(const JournalContent& journal);
// How many layer files these manifests have.
[[nodiscard]] int64_t layer_files(const std::vector<Manifest>& manifests);

}  // namespace mxfp4
