#include "formats/source/natural_order.hpp"

#include <algorithm>

#include "lib/core/text.hpp"

namespace mxfp4 {

bool natural_less(std::string_view a, std::string_view b) {
  const auto take_number = [&](std::string_view& text) {
    size_t length = 0;
    while (length < text.size() && is_digit(text[length])) ++length;
    std::string_view digits = text.substr(0, length);
    text.remove_prefix(length);
    digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
    return digits;
  };
  std::string_view rest_a = a;
  std::string_view rest_b = b;
  while (!rest_a.empty() && !rest_b.empty()) {
    if (is_digit(rest_a[0]) && is_digit(rest_b[0])) {
      const std::string_view x = take_number(rest_a);
      const std::string_view y = take_number(rest_b);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
    } else {
      if (rest_a[0] != rest_b[0]) return rest_a[0] < rest_b[0];
      rest_a.remove_prefix(1);
      rest_b.remove_prefix(1);
    }
  }
  if (rest_a.empty() != rest_b.empty()) return rest_a.empty();
  return a < b;  // equal but for leading zeros
}

}  // namespace mxfp4
