#include "apps/blobs.hpp"

#include <fmt/format.h>

#include <string>
#include <system_error>

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
  const std::string name = shell_word(card.string());
  std::string upload = fmt::format("hf upload OWNER/NAME {}", shell_word(path.string()));
  // A hub shows the README.md at the top, which a whole model directory may have from
  // its checkpoint.
  std::error_code ignored;
  if (!std::filesystem::exists(path / card.filename(), ignored)) {
    upload += fmt::format(" && hf upload OWNER/NAME {} {}", name, card.filename().string());
  }
  console.say(fmt::format("{}: model card; to upload: {}", name, upload));
}

}  // namespace mxfp4
