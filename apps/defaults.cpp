#include "apps/defaults.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "apps/known_names.hpp"
#include "apps/parsers.hpp"
#include "apps/suggest.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

void check_threads(const std::string& text) {
  const auto number = whole_number(text);
  if (number && *number >= 1 && *number <= 1024) return;
  throw Error::usage(fmt::format("'{}' is not a number from 1 to 1024", text));
}

void check_color(const std::string& text) {
  if (text == "auto" || text == "always" || text == "never") return;
  throw Error::usage(fmt::format("'{}' is not auto, always or never", text));
}

struct DefaultRow {
  const char* name;
  const char* variable;
  Default Defaults::*place;
  void (*check)(const std::string& text);  // throws for a wrong value
};

const std::array<DefaultRow, 4> kRows = {{
    {"revision", "MXFP4_REPACK_REVISION", &Defaults::revision,
     [](const std::string& text) { (void)rules_named(text); }},
    {"threads", "MXFP4_REPACK_THREADS", &Defaults::threads, check_threads},
    {"memory", "MXFP4_REPACK_MEMORY", &Defaults::memory,
     [](const std::string& text) { (void)parse_size(text, "a size"); }},
    {"color", "MXFP4_REPACK_COLOR", &Defaults::color, check_color},
}};

// A wrong default is not a typed flag: the error names the variable instead.
void check(const DefaultRow& row, const std::string& value) {
  try {
    row.check(value);
  } catch (const Error& error) {
    throw Error(error.kind(), error.message()).at_key(row.variable).hint(error.hint_text());
  }
}

std::string text_of(GetVariable get, const char* name) {
  const char* text = get(name);
  return text == nullptr ? "" : text;
}

}  // namespace

std::vector<std::string> Defaults::words() const {
  std::vector<std::string> out;
  for (const DefaultRow& row : kRows) {
    const Default& known = this->*row.place;
    if (!known.value.empty()) {
      out.push_back(fmt::format("{} {} ({})", row.name, known.value, known.from));
    }
  }
  return out;
}

std::vector<std::string> misspelt_variables(const char* const* environment) {
  constexpr std::string_view kPrefix = "MXFP4_REPACK_";
  // Behind the prefix: its letters would make all names near.
  std::vector<std::string> known = {"PROGRESS_SECONDS", "SIMD"};
  for (const DefaultRow& row : kRows) {
    known.push_back(std::string(row.variable).substr(kPrefix.size()));
  }
  std::vector<std::string> words;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const std::string_view name = entry.substr(0, entry.find('='));
    if (!name.starts_with(kPrefix)) continue;
    const std::string_view own = name.substr(kPrefix.size());
    if (std::ranges::find(known, own) != known.end()) continue;
    const std::string near = nearest_word(own, known);
    if (near.empty()) continue;
    words.push_back(fmt::format("{}: no such variable; did you mean {}{}?", name, kPrefix, near));
  }
  return words;
}

Defaults read_defaults(GetVariable get) {
  Defaults defaults;
  for (const DefaultRow& row : kRows) {
    const std::string value = text_of(get, row.variable);
    if (value.empty()) continue;
    check(row, value);
    defaults.*row.place = {value, row.variable};
  }
  return defaults;
}

}  // namespace mxfp4
