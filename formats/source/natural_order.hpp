// Orders file and tensor names, runs of digits by their value.
#pragma once

#include <cstring>
#include <string>

namespace mxfp4 {

// "x-2" before "x-10". A strict total order of names without a NUL.
[[nodiscard]] inline bool natural_less(const std::string& a, const std::string& b) {
  return strverscmp(a.c_str(), b.c_str()) < 0;
}

}  // namespace mxfp4
