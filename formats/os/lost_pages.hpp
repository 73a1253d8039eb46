// Survives the truncation of a mapped file by another process. Touching a page behind the new end
// raises SIGBUS, which would end this process without any cleaning up. The handler here lets the
// lost part read as zeros and notes the file; the next check throws, and destructors clean up.
//
// Usage:  survive_lost_pages();  ... read maps ...  check_lost_pages();
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/core/tensor.hpp"

namespace mxfp4 {

// Installs the handler of SIGBUS, for the whole process.
void survive_lost_pages();

// The first file that lost mapped pages.
[[nodiscard]] std::optional<std::string> file_that_lost_pages();

// Throws Error::input naming that file, if there is one: what was read of it is not its content.
// Call it after reading a map, before publishing anything that was made from it.
void check_lost_pages();

// A map that the handler knows, as long as this lives. Movable.
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
