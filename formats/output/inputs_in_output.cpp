#include "formats/output/inputs_in_output.hpp"

#include <fmt/format.h>

#include <set>
#include <string>
#include <system_error>

#include "formats/os/file_identity.hpp"
#include "formats/output/replacement.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

// The files in `directory` and its folders; not all of them if there are many, which this program
// does not write.
std::set<FileIdentity> identities_in(const fs::path& directory) {
  constexpr size_t kMany = 100'000;
  std::set<FileIdentity> found;
  std::error_code error;
  for (fs::recursive_directory_iterator at(directory, error), end; !error && at != end;
       at.increment(error)) {
    if (const auto identity = identity_of(at->path())) found.insert(*identity);
    if (found.size() > kMany) break;
  }
  return found;
}

}  // namespace

void refuse_inputs_in(const fs::path& path, const std::vector<fs::path>& inputs) {
  std::set<FileIdentity> there = identities_in(path);
  for (const fs::path& folder : Replacement::folders(path)) there.merge(identities_in(folder));
  if (there.empty()) return;  // no file can be lost
  for (const fs::path& input : inputs) {
    const auto identity = identity_of(input);
    // An input that is a link may lie in `output` though its content does not: its parent is
    // compared.
    const bool inside = lies_in(input, path) || lies_in(input.parent_path() / ".", path);
    if (!inside && !(identity && there.contains(*identity))) continue;
    throw Error::output(fmt::format("holds the input {}", input.string()))
        .in_file(path.string())
        .hint("choose another directory");
  }
}

}  // namespace mxfp4
