#include "lib/core/human_bytes.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace mxfp4 {

std::string human_bytes(int64_t bytes) {
  static constexpr std::array<std::string_view, 6> kUnits = {"B",   "KiB", "MiB",
                                                             "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{} B", bytes);
  const int decimals = value < 10 ? 2 : value < 100 ? 1 : 0;  // three significant digits
  return fmt::format("{:.{}f} {}", value, decimals, kUnits[unit]);
}

}  // namespace mxfp4
