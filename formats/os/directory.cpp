#include "formats/os/directory.hpp"

namespace mxfp4 {

namespace fs = std::filesystem;

std::vector<fs::directory_entry> list_directory(const fs::path& directory, std::error_code& error) {
  std::vector<fs::directory_entry> entries;
  // A range-based for would throw if reading the next entry fails.
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    entries.push_back(*at);
  }
  return entries;
}

void remove_if_empty(const fs::path& directory) {
  std::error_code ignored;
  std::vector<fs::path> folders;
  for (const fs::directory_entry& entry : list_directory(directory, ignored)) {
    if (fs::is_directory(entry.symlink_status(ignored))) folders.push_back(entry.path());
  }
  for (const fs::path& folder : folders) remove_if_empty(folder);
  fs::remove(directory, ignored);
}

}  // namespace mxfp4
