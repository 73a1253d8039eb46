#include "lib/revisions/knob_conditions.hpp"

#include <algorithm>
#include <cctype>

namespace mxfp4 {

bool reads_as_on(std::string_view value) {
  std::string text(value);
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text == "1" || text == "true";
}

}  // namespace mxfp4
