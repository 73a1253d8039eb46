#include "lib/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "lib/core/error.hpp"
#include "lib/core/utf8.hpp"
#include "lib/core/visible.hpp"

namespace mxfp4 {
namespace {

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

}  // namespace

std::string shown(std::string_view text) {
  constexpr size_t kMaxShown = 200;
  const std::string out = visible(text.substr(0, kMaxShown));
  return text.size() > kMaxShown ? out + "..." : out;
}

std::string in_quotes(std::string_view text) { return fmt::format("\"{}\"", shown(text)); }

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

void check_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t length = utf8_sequence(text.substr(i, 4));
    if (length == 0) {
      throw Error::input(fmt::format("not UTF-8: byte 0x{:02x} at position {}",
                                     static_cast<unsigned char>(text[i]), i));
    }
    i += length;
  }
}

void check_tensor_name(std::string_view name) {
  if (name.empty()) throw Error::input("a tensor has an empty name");
  check_utf8(name);
  if (std::ranges::any_of(name, is_control)) {
    throw Error::input(fmt::format("tensor name {} holds a control character", in_quotes(name)));
  }
}

std::string alternatives(const std::vector<std::string>& words) {
  if (words.size() < 2) return words.empty() ? "" : words.front();
  return fmt::format("{} or {}", fmt::join(words.begin(), words.end() - 1, ", "), words.back());
}

std::string number_ranges(const std::vector<int64_t>& numbers) {
  std::string out;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    out += fmt::format("{}{}", out.empty() ? "" : ", ", numbers[i]);
    if (last > i) out += fmt::format("-{}", numbers[last]);
    i = last + 1;
  }
  return out;
}

void check_choice(std::string_view what, std::string_view value,
                  std::initializer_list<std::string_view> choices) {
  if (std::ranges::find(choices, value) != choices.end()) return;
  throw Error::input(fmt::format("{}: {}, expected {}", what, in_quotes(value),
                                 alternatives({choices.begin(), choices.end()})));
}

}  // namespace mxfp4
