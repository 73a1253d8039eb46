#include "formats/json/python_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "formats/json/strict_json.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

// A name that begins with another one comes first.
constexpr std::array<std::string_view, 3> kConstants = {"-Infinity", "Infinity", "NaN"};

}  // namespace

nlohmann::json parse_python_json(std::string_view text) {
  return parse_strict_json(text, /*last_counts=*/true);
}

std::string quote_python_constants(std::string_view text, std::string_view mark) {
  std::string out;
  out.reserve(text.size());
  bool in_string = false;
  for (size_t i = 0; i < text.size();) {
    const std::string_view rest = text.substr(i);
    const auto constant = std::ranges::find_if(
        kConstants, [&](std::string_view name) { return rest.starts_with(name); });
    if (!in_string && constant != kConstants.end()) {
      out += fmt::format("\"{}{}\"", mark, *constant);
      i += constant->size();
      continue;
    }
    const bool escape = in_string && text[i] == '\\' && rest.size() > 1;
    if (text[i] == '"') in_string = !in_string;
    out += rest.substr(0, escape ? 2 : 1);
    i += escape ? 2 : 1;
  }
  return out;
}

std::string unquote_python_constants(std::string text, std::string_view mark) {
  for (const std::string_view name : kConstants) {
    const std::string quoted = fmt::format("\"{}{}\"", mark, name);
    for (size_t at = text.find(quoted); at != std::string::npos; at = text.find(quoted, at)) {
      text.replace(at, quoted.size(), name);
    }
  }
  return text;
}

nlohmann::ordered_json parse_python_config(std::string_view text, std::string_view mark) {
  return parse_strict_ordered_json(quote_python_constants(text, mark), /*last_counts=*/true);
}

}  // namespace mxfp4
