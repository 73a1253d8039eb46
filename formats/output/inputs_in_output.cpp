#include "formats/output/inputs_in_output.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>

#include "formats/os/file_identity.hpp"
#include "formats/output/replacement.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

// What two paths to one file have in common, though a volume that is mounted twice, through FUSE or
// the network, has two device numbers. A copy has another time of change.
using FileTrace = std::tuple<std::string, int64_t, int64_t>;  // name, bytes, time of change
using TraceOnDevice = std::pair<FileTrace, dev_t>;
std::optional<TraceOnDevice> trace_of(const fs::path& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return std::nullopt;
  constexpr int64_t kSecond = 1'000'000'000;
  return TraceOnDevice{{path.filename().string(), found.st_size,
                        found.st_ctim.tv_sec * kSecond + found.st_ctim.tv_nsec},
                       found.st_dev};
}

// Files and folders below a directory.
struct Below {
  std::set<FileIdentity> identities;
  std::multimap<FileTrace, dev_t> traces;

  // On one device the identity tells two files apart, and a copy may be made in the same tick.
  bool has_on_another_device(const TraceOnDevice& input) const {
    const auto [first, last] = traces.equal_range(input.first);
    return std::any_of(first, last,
                       [&](const auto& trace) { return trace.second != input.second; });
  }
};

// Not all of them if there are many, which this program does not write.
void look_below(const fs::path& directory, Below& below) {
  constexpr size_t kMany = 100'000;
  std::error_code error;
  for (fs::recursive_directory_iterator at(directory, error), end;
       !error && at != end && below.identities.size() <= kMany; at.increment(error)) {
    if (const auto identity = identity_of(at->path())) below.identities.insert(*identity);
    if (auto trace = trace_of(at->path())) below.traces.insert(*std::move(trace));
  }
}

}  // namespace

void refuse_inputs_in(const fs::path& path, const std::vector<fs::path>& inputs) {
  Below there;
  look_below(path, there);
  for (const fs::path& folder : Replacement::folders(path)) look_below(folder, there);
  if (there.identities.empty()) return;  // no file can be lost
  for (const fs::path& input : inputs) {
    const auto identity = identity_of(input);
    const auto trace = trace_of(input);
    // An input that is a link may lie in `output` though its content does not: its parent is
    // compared.
    const bool inside = lies_in(input, path) || lies_in(input.parent_path() / ".", path);
    const bool found = (identity && there.identities.contains(*identity)) ||
                       (trace && there.has_on_another_device(*trace));
    if (!inside && !found) continue;
    throw Error::output(fmt::format("holds the input {}", input.string()))
        .in_file(path.string())
        .hint("choose another directory");
  }
}

}  // namespace mxfp4
