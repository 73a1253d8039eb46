#include "apps/output_directory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <system_error>

#include "formats/manifest.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

bool is_ours(const std::string& name) {
  return name == kManifestName || name == kIndexName || name == kBlobFolder ||
         (name.starts_with("layer-") && name.find(".safetensors") != std::string::npos) ||
         (name.starts_with(".layer-") && name.find(".tmp-") != std::string::npos) ||
         (name.starts_with("rank-") && name.find("-of-") != std::string::npos);
}

// Everything in `directory` that convert writes; throws for anything else.
std::vector<fs::path> own_entries(const fs::path& directory) {
  std::vector<fs::path> entries;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    if (!is_ours(entry.path().filename().string())) {
      throw Error::output(fmt::format("{}: holds {}, which this program did not write",
                                      directory.string(), entry.path().filename().string()))
          .hint("choose an empty directory");
    }
    entries.push_back(entry.path());
  }
  return entries;
}

void clear(const fs::path& directory) {
  const std::vector<fs::path> entries = own_entries(directory);
  for (const fs::path& entry : entries) {
    if (fs::is_directory(entry)) (void)own_entries(entry);
  }
  // Without its manifest a blob is incomplete for everybody, whatever happens next.
  for (const fs::path& entry : entries) {
    if (fs::is_directory(entry)) fs::remove(entry / kManifestName);
  }
  fs::remove(directory / kManifestName);
  for (const fs::path& entry : entries) fs::remove_all(entry);
}

// Removes `path` and the directories in it as long as they are empty.
void remove_if_empty(const fs::path& path) {
  std::error_code ignored;
  std::vector<fs::path> folders;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, ignored)) {
    if (entry.is_directory(ignored)) folders.push_back(entry.path());
  }
  for (const fs::path& folder : folders) fs::remove(folder, ignored);
  fs::remove(path, ignored);
}

}  // namespace

OutputDirectory::OutputDirectory(fs::path path, bool force) : path_(std::move(path)) {
  try {
    existed_ = fs::exists(path_);
    if (!existed_) return;
    if (!fs::is_directory(path_)) {
      throw Error::output(fmt::format("{}: exists and is not a directory", path_.string()));
    }
    if (fs::is_empty(path_)) return;
    if (!force) {
      throw Error::output(fmt::format("{}: exists and is not empty", path_.string()))
          .hint("--force replaces an earlier result");
    }
    clear(path_);
  } catch (const fs::filesystem_error& error) {
    throw Error::output(fmt::format("{}: {}", path_.string(), error.code().message()));
  }
}

OutputDirectory::~OutputDirectory() {
  if (!keep_ && !existed_) remove_if_empty(path_);
}

void OutputDirectory::reserve(int64_t bytes) const {
  fs::path probe = fs::absolute(path_);
  while (!fs::exists(probe)) probe = probe.parent_path();
  std::error_code error;
  const fs::space_info space = fs::space(probe, error);
  if (error) return;  // a file system that cannot tell fails at the write
  if (space.available < static_cast<uintmax_t>(bytes)) {
    throw Error::output(fmt::format("{}: needs up to {} bytes, the file system has {} free",
                                    path_.string(), bytes, space.available));
  }
}

}  // namespace mxfp4
