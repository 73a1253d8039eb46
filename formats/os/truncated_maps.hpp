// Survives the truncation of a mapped file by another process. Touching a page behind the new end
// raises SIGBUS, which would end this process without any cleaning up. The handler here puts zeros
// in place of the missing part and notes the file; the next check throws, and destructors clean up.
//
// Usage:  survive_truncation();  ... read maps ...  check_truncation();
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/core/tensor.hpp"

namespace mxfp4 {

// Installs the handler of SIGBUS, for the whole process.
void survive_truncation();

// The mapped file that was truncated first; nullopt if none was.
[[nodiscard]] std::optional<std::string> truncated_file();

// Throws Error::input naming that file, if there is one: bytes read from it may be zeros.
// Call it after reading a map, before publishing anything that was made from it.
void check_truncation();

// Makes a map known to the handler for as long as this object lives. Movable.
class WatchedMap {
 public:
  WatchedMap() = default;
  WatchedMap(ConstBytes bytes, const std::string& file);
  WatchedMap(WatchedMap&& other) noexcept;
  WatchedMap& operator=(WatchedMap&& other) noexcept;
  ~WatchedMap();

  struct Entry;

 private:
  Entry* entry_ = nullptr;
};

}  // namespace mxfp4
