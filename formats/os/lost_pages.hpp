// What happens when another process cuts off a file that is mapped: touching a lost page raises
// SIGBUS, which would end the process in the middle of everything. Instead the lost part reads as
// zeros from then on and the file is noted, so that the next check throws and destructors clean up.
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

// Throws Error::input naming the file, if there is one: what was read of it is not its content. To
// be asked after reading a map and before anything that was made from it is published.
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
