// What the fuzz targets share: which errors are right, seals without which nothing would get past
// the first check, and files that are only in memory or gone at once.
#pragma once

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "formats/blob/manifest.hpp"
#include "formats/checksum/checksum.hpp"
#include "lib/core/error.hpp"

namespace mxfp4::fuzz {

inline std::string_view text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// For each place that calls only_input_errors: how many inputs it took without an error.
inline std::vector<int64_t>& taken() {
  static std::vector<int64_t> counts;
  return counts;
}

// Whatever a file holds, only Error::input may come of it.
template <class Body>
void only_input_errors(Body&& body) {
  static const size_t kPlace = (taken().push_back(0), taken().size() - 1);  // each has its own Body
  try {
    body();
    ++taken()[kPlace];
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInput) std::abort();
  }
}

inline std::string checksum_of(std::string_view text) {
  Checksum sum;
  sum.update(std::as_bytes(std::span(text)));
  return sum.hex();
}

// A JSON object with the right seal; any other text as it is.
inline std::string sealed(std::string_view text) {
  auto json = nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::string(text);
  json.erase("manifest_xxh3_128");
  return seal_json(json);
}

// A file for code that takes a path.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view content) : descriptor_(memfd_create("fuzz", MFD_CLOEXEC)) {
    if (write(descriptor_, content.data(), content.size()) !=
        static_cast<ssize_t>(content.size())) {
      std::abort();
    }
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { close(descriptor_); }

  [[nodiscard]] std::filesystem::path path() const {
    return fmt::format("/proc/self/fd/{}", descriptor_);
  }

 private:
  int descriptor_;
};

// A folder for code that takes one; it goes with what was put into it.
class Folder {
 public:
  Folder() : path_(below("/dev/shm")) {
    if (path_.empty()) path_ = below(std::filesystem::temp_directory_path());
    if (path_.empty()) std::abort();
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  void put(const std::filesystem::path& file, std::string_view content) const {
    std::ofstream out(path_ / file, std::ios::binary);
    out.write(content.data(), static_cast<std::streamsize>(content.size()));
    if (!out.flush()) std::abort();
  }

 private:
  // Empty if none can be made there.
  static std::filesystem::path below(const std::filesystem::path& place) {
    std::string name = (place / "mxfp4-fuzz-XXXXXX").string();
    return mkdtemp(name.data()) == nullptr ? std::filesystem::path() : std::filesystem::path(name);
  }

  std::filesystem::path path_;
};

}  // namespace mxfp4::fuzz
