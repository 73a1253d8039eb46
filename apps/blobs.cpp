#include "apps/blobs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <system_error>

#include "apps/text_layout.hpp"
#include "formats/checkpoint/blob_source.hpp"
#include "formats/checkpoint/open_source.hpp"
#include "formats/conversion/source_sample.hpp"

namespace mxfp4 {
std::string mend_blob() {
  return "convert again, with the same flags and --resume --check; or fetch those files again";
}

std::optional<std::string> other_checkpoint(const std::filesystem::path& path,
                                            const Manifest& manifest) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path / kBlobFolder, ignored)) return std::nullopt;
  std::unique_ptr<Source> source;
  try {
    source = open_source(path);
  } catch (const Error&) {
    return std::nullopt;  // no checkpoint
  }
  if (source->kind() == kBlobKind) return std::nullopt;
  const auto differs = checkpoint_difference(manifest, *source, 1);
  if (!differs) return std::nullopt;
  return fmt::format("the checkpoint around the blob is not the one that it was made from: {}",
                     *differs);
}

void warn_of_missing_ranks(const std::filesystem::path& path,
                           const std::vector<Manifest>& manifests, const Console& console) {
  const std::string missing = missing_ranks(path, manifests);
  if (!missing.empty()) console.warn(missing);
}

}  // namespace mxfp4
