// Directories: listed by path, or held open. Where files are written, removed or renamed, the
// directory is held: its path may lead elsewhere meanwhile, through a link that somebody put in
// its place.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "formats/os/file_identity.hpp"

namespace mxfp4 {

// The entries, in no order. Sets `error` on failure and returns the entries found until then. The
// caller decides whether a directory that cannot be read is an error of input, of output, or none.
[[nodiscard]] std::vector<std::filesystem::directory_entry> list_directory(
    const std::filesystem::path& directory, std::error_code& error);

// A directory that is open; copies share the descriptor. Names and relative paths start from it,
// and no link is followed on the way. Errors are Error::output naming the path.
class Directory {
 public:
  // Opens what `path` leads to; empty: the current directory. Unless `follow`, refuses a link at
  // its end.
  explicit Directory(std::filesystem::path path, bool follow = true);
  // The path that messages name.
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // A directory that may be used, but not listed, can be neither locked nor synced by it.
  [[nodiscard]] int descriptor() const { return *descriptor_; }
  // The folder in it, if there is one. "." is the directory itself.
  [[nodiscard]] std::optional<Directory> find(const std::filesystem::path& folder) const;
  // The same; made if it is missing.
  [[nodiscard]] Directory folder(const std::filesystem::path& folder) const;
  // What has this name, a link not followed.
  [[nodiscard]] std::optional<FileIdentity> entry(const std::string& name) const;
  // Whether the directory's entry `name` is that open directory.
  [[nodiscard]] bool holds(const std::string& name, const Directory& directory) const;
  // The names of its entries, in no order.
  [[nodiscard]] std::vector<std::string> names() const;

  // Creates a folder; false with errno set if that fails.
  [[nodiscard]] bool create(const std::string& name, uint32_t mode) const;
  void rename(const std::string& from, const Directory& to, const std::string& name) const;
  // Makes its entry `name` what `other_name` in `other` was, and the other way round, in one step.
  // False, with errno set, if the file system or the kernel cannot.
  [[nodiscard]] bool exchange(const std::string& name, const Directory& other,
                              const std::string& other_name) const;
  // Removes a file, if it is there.
  void remove(const std::string& name) const;
  // Removes an empty folder; false with errno set if that fails.
  [[nodiscard]] bool remove_folder(const std::string& name) const;
  // Makes what was renamed or created in it durable.
  void sync() const;

 private:
  Directory(std::filesystem::path path, int descriptor);

  std::filesystem::path path_;
  std::shared_ptr<const int> descriptor_;
};

// Makes a file or directory durable, with `data_only` only the bytes of a file; returns 0 or
// the errno.
[[nodiscard]] int sync_file(int descriptor, bool data_only = false);

}  // namespace mxfp4
