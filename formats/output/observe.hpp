// Looks at OUT, once, and says what is there: one value, from which states.hpp's table gives the
// answer. Nothing here changes OUT.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "formats/blob/manifest.hpp"
#include "formats/blob/shard_manifest.hpp"
#include "formats/output/output_directory.hpp"
#include "formats/output/records.hpp"
#include "formats/output/states.hpp"
#include "lib/plan/shard.hpp"

namespace mxfp4 {

// What a run would write. Without `planned` (unpack) no result is the run's own.
struct Wanted {
  std::vector<Manifest> planned{};  // without what depends on the data; one a rank
  bool include_rest = false;        // OUT is a model directory, the blob a folder in it
  std::optional<Shard> shard{};
  std::string plan{};                          // identity
  SourceSeen source{};                         // the input
  std::map<std::string, std::string> flags{};  // that decide what is made: name, value
};

struct Seen {
  There there = There::kNothing;
  Named named{};                             // what a refusal names
  std::optional<Error> cause{};              // why a manifest cannot be read
  std::vector<Manifest> ranks{};             // complete ranks of this conversion
  std::vector<Manifest> other_ranks{};       // complete ones that --rank leaves out
  JournalContent journal{};                  // the unfinished run's, of this conversion or shard
  std::optional<ShardManifest> own_shard{};  // this shard's record
  std::optional<BegunReplacement> beside{};  // if the unfinished run is an interrupted replacement
  std::string lost_rank{};                   // a rank that a replacement would not make again
  std::string holds = "nothing";             // "a complete result of 36 layer files", ...
};

[[nodiscard]] Seen observe(const OutputDirectory& directory, const Wanted& wanted);

}  // namespace mxfp4
