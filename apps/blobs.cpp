#include "apps/blobs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "apps/text_layout.hpp"
#include "formats/output/own_files.hpp"

namespace mxfp4 {
namespace {

// What lies in the blob at `path`, and convert did not write. Empty if the folder cannot be listed.
std::vector<std::filesystem::path> foreign_files(const std::filesystem::path& path) {
  try {
    return find_own_files(path, Evidence::kName).foreign;
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

std::string mend_blob(const std::filesystem::path& path) {
  std::string first;
  if (const auto foreign = foreign_files(path); !foreign.empty()) {
    const std::string others =
        foreign.size() == 1 ? "" : fmt::format(" and {} more", foreign.size() - 1);
    first = fmt::format("take {}{} out of {}, which this program did not write; then ",
                        shell_word(std::ranges::min(foreign).string()), others,
                        shell_word(path.string()));
  }
  return first +
         "convert again, with the same flags and --resume --check; or fetch those files again";
}

void warn_of_missing_ranks(const std::filesystem::path& path,
                           const std::vector<Manifest>& manifests, const Console& console) {
  const std::string missing = missing_ranks(path, manifests);
  if (!missing.empty()) console.warn(missing);
}

}  // namespace mxfp4
