#include "formats/os/directory.hpp"

namespace mxfp4 {

namespace fs = std::filesystem;

std::vector<fs::directory_entry> list_directory(const fs::path& directory, std::error_code& error) {
  std::vector<fs::directory_entry> entries;
  // A range-based for would throw where reading on fails.
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    entries.push_back(*at);
  }
  return entries;
}

}  // namespace mxfp4
