#include "lib/core/suggest.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <numeric>

namespace mxfp4 {
namespace {

bool same_letter(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

// Whether `name` begins with `word`: "triton" is near "triton_kernels", however long the rest is.
bool begins_with(std::string_view name, std::string_view word) {
  constexpr size_t kShortest = 4;
  return word.size() >= kShortest && word.size() <= name.size() &&
         std::ranges::equal(word, name.substr(0, word.size()), same_letter);
}

// The Levenshtein distance.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (same_letter(a[i], b[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr size_t kMost = 4;  // a third of a long name would be another name
  size_t nearest = std::clamp<size_t>(word.size() / 3, 2, kMost) + 1;
  std::string found;
  for (const std::string& candidate : candidates) {
    const size_t distance = begins_with(candidate, word) ? 0 : edit_distance(word, candidate);
    if (distance >= nearest) continue;
    nearest = distance;
    found = candidate;
  }
  return found;
}

std::string nearest_hint(std::string_view word, const std::vector<std::string>& candidates,
                         std::string_view otherwise) {
  const std::string nearest = nearest_word(word, candidates);
  if (!nearest.empty()) return fmt::format("did you mean {}?", nearest);
  if (!otherwise.empty()) return std::string(otherwise);
  return fmt::format("one of {}", fmt::join(candidates, ", "));
}

Error unknown_value(std::string_view flag, std::string_view value,
                    const std::vector<std::string>& known) {
  return Error::usage(fmt::format("unknown value '{}'", value))
      .at_key(flag)
      .hint(nearest_hint(value, known));
}

}  // namespace mxfp4
