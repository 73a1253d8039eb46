// Refuses what other conversions left in OUT, and says which flag or file tells them apart. Nothing here
// changes OUT.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "formats/blob/journal.hpp"
#include "formats/blob/manifest.hpp"
#include "formats/blob/shard_manifest.hpp"
#include "formats/output/output_directory.hpp"

namespace mxfp4 {

struct OutputRequest;

class OtherConversions {
 public:
  // `blob`: where this conversion writes. `plan`: its identity. `source`: its input. All are referred to.
  OtherConversions(const OutputRequest& request, const OutputDirectory& directory,
                   const std::filesystem::path& blob, const std::string& plan,
                   const SourceSeen& source)
      : request_(request), directory_(directory), blob_(blob), plan_(plan), source_(source) {}

  // Of an unfinished OUT, whatever this conversion, resumed or a shard, may not go on with or write
  // beside. Throws Error::usage for flags that differ, Error::output for the rest.
  void refuse() const;
  // The run that `found` records, unless it has this plan and this input. Throws Error::usage.
  void refuse_begun(const JournalContent& found) const;
  // Layer files that the manifests of this conversion will not name. Throws Error::output.
  void refuse_layers(const std::vector<Manifest>& planned) const;

 private:
  void refuse_unrecorded() const;
  void refuse_other_place() const;
  void refuse_shards(const std::filesystem::path& blob) const;
  void refuse_whole_conversion() const;
  void refuse_unfinished_shards() const;

  const OutputRequest& request_;
  const OutputDirectory& directory_;
  const std::filesystem::path& blob_;
  const std::string& plan_;
  const SourceSeen& source_;
};

}  // namespace mxfp4
