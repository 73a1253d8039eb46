#include "formats/output/inputs_in_output.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <optional>
#include <set>
#include <string>
#include <system_error>

#include "formats/blob/manifest.hpp"
#include "formats/os/atomic_file.hpp"
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

// A temporary file that shows whether two paths lead to one directory. A volume that is mounted
// twice, through FUSE or the network, has two device numbers, but a file made in one place appears
// in the other.
class Probe {
 public:
  explicit Probe(const Directory& directory) : directory_(directory) {
    try {
      descriptor_ = create_temporary(directory_, std::string(kManifestName), name_);
    } catch (const Error&) {
      // The directory cannot be written to, so nothing in it is at risk.
    }
  }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;
  ~Probe() {
    if (descriptor_ < 0) return;
    close(descriptor_);
    // Twice, since what failed once may pass.
    for (int i = 0; i < 2 && unlinkat(directory_.descriptor(), name_.c_str(), 0) != 0; ++i) {
    }
  }

  // Whether `path` or one of the directories above it is the probe's directory.
  [[nodiscard]] bool is_seen_from(const fs::path& path) const {
    std::error_code error;
    fs::path at = fs::weakly_canonical(path, error);
    if (error || descriptor_ < 0) return false;
    for (; !at.empty(); at = at.parent_path()) {
      if (identity_of(at / name_)) return true;
      if (at == at.parent_path()) break;
    }
    return false;
  }

 private:
  Directory directory_;
  std::string name_;
  int descriptor_ = -1;
};

}  // namespace

void refuse_inputs_in(const Directory& output, const std::vector<fs::path>& inputs,
                      bool look_only) {
  const fs::path& path = output.path();
  std::set<FileIdentity> there = identities_in(path);
  for (const fs::path& folder : Replacement::folders(path)) there.merge(identities_in(folder));
  if (there.empty()) return;  // no file can be lost
  std::optional<Probe> probe;
  if (!look_only) probe.emplace(output);
  const auto probed = [&](const fs::path& at) { return probe && probe->is_seen_from(at); };
  for (const fs::path& input : inputs) {
    const auto identity = identity_of(input);
    // An input that is a link may lie in `output` though its content does not: its parent is
    // compared.
    const bool inside = lies_in(input, path) || lies_in(input.parent_path() / ".", path);
    const bool found = inside || (identity && there.contains(*identity)) || probed(input) ||
                       probed(input.parent_path() / ".");
    if (!found) continue;
    throw Error::output(fmt::format("holds the input {}", input.string()))
        .in_file(path.string())
        .hint("choose another directory");
  }
}

}  // namespace mxfp4
