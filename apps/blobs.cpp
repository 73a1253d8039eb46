#include "apps/blobs.hpp"

#include <fmt/format.h>

#include <string>

#include "apps/text_layout.hpp"
#include "formats/blob/model_card.hpp"

namespace mxfp4 {

void warn_of_missing_ranks(const std::filesystem::path& path,
                           const std::vector<Manifest>& manifests, const Console& console) {
  const std::string missing = missing_ranks(path, manifests);
  if (!missing.empty()) console.warn(missing);
}

void add_model_card(const std::filesystem::path& path, const Console& console) {
  const std::vector<std::filesystem::path> blobs = require_blobs(path);
  const std::filesystem::path card = write_model_card(blobs, read_manifests(blobs));
  console.say(fmt::format("{}: model card; to upload: hf upload OWNER/NAME {}",
                          shell_word(card.string()), shell_word(path.string())));
}

}  // namespace mxfp4
