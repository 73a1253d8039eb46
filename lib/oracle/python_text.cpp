#include "lib/oracle/python_text.hpp"

#include <fmt/format.h>

#include "lib/core/error.hpp"

namespace mxfp4 {

std::string python_list(const std::vector<std::string_view>& items) {
  std::string out = "[";
  for (const std::string_view item : items) {
    if (out.size() > 1) out += ", ";
    out += python_repr(item);
  }
  return out + "]";
}

std::string python_repr(std::string_view text) { return fmt::format("'{}'", text); }

bool python_int_is_nonzero(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n\v\f\r";
  const size_t first = text.find_first_not_of(kBlanks);
  std::string_view digits;
  if (first != std::string_view::npos) {
    digits = text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
    if (digits.starts_with('+') || digits.starts_with('-')) digits.remove_prefix(1);
  }
  bool well_formed = !digits.empty() && digits.back() != '_';
  char before = '_';
  for (const char c : digits) {
    // An underscore may only stand between two digits.
    if ((c < '0' || c > '9') && (c != '_' || before == '_')) well_formed = false;
    before = c;
  }
  if (!well_formed) {
    throw Error::unsupported("invalid literal for int() with base 10: " + python_repr(text))
        .reference_type("ValueError");
  }
  return digits.find_first_not_of("0_") != std::string_view::npos;
}

}  // namespace mxfp4
