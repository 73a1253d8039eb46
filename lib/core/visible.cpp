#include "lib/core/visible.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace mxfp4 {
namespace {

struct Range {
  uint32_t first;
  uint32_t last;
};

// Unicode 15: general categories Cc (from U+0080 on), Cf, Zl and Zp; and what is drawn as nothing.
constexpr std::array<Range, 16> kHidden = {{{0x80, 0x9F},
                                            {0xAD, 0xAD},
                                            {0x34F, 0x34F},
                                            {0x600, 0x605},
                                            {0x61C, 0x61C},
                                            {0x6DD, 0x6DD},
                                            {0x70F, 0x70F},
                                            {0x180B, 0x180F},
                                            {0x200B, 0x200F},
                                            {0x2028, 0x202E},
                                            {0x2060, 0x206F},
                                            {0xFE00, 0xFE0F},
                                            {0xFEFF, 0xFEFF},
                                            {0xFFF9, 0xFFFB},
                                            {0x1D173, 0x1D17A},
                                            {0xE0000, 0xE0FFF}}};

uint32_t code_point(std::string_view sequence) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(sequence[i]); };
  switch (sequence.size()) {
    case 2:
      return (byte(0) & 0x1FU) << 6U | (byte(1) & 0x3FU);
    case 3:
      return (byte(0) & 0x0FU) << 12U | (byte(1) & 0x3FU) << 6U | (byte(2) & 0x3FU);
    case 4:
      return (byte(0) & 0x07U) << 18U | (byte(1) & 0x3FU) << 12U | (byte(2) & 0x3FU) << 6U |
             (byte(3) & 0x3FU);
    default:
      return byte(0);
  }
}

bool is_hidden(uint32_t code) {
  return std::ranges::any_of(
      kHidden, [&](const Range& range) { return code >= range.first && code <= range.last; });
}

// Bytes of the well-formed UTF-8 sequence at the front of the text (Unicode 15, table 3-7); 0 if
// there is none.
size_t utf8_sequence(std::string_view text) {
  const auto at = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const auto is_tail = [&](size_t i) { return (at(i) & 0xC0) == 0x80; };
  const int lead = at(0);
  const int second = at(1);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  if (lead < 0xE0) return is_tail(1) ? 2 : 0;
  const int low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const int high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (second < low || second > high || !is_tail(2)) return 0;
  if (lead < 0xF0) return 3;
  return is_tail(3) ? 4 : 0;
}

}  // namespace

std::string visible(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t size = utf8_sequence(text);
    const std::string_view sequence = text.substr(0, std::max<size_t>(size, 1));
    const uint32_t code = code_point(sequence);
    if (size == 0 || code < 0x20 || code == 0x7F) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
    } else if (is_hidden(code)) {
      out += code <= 0xFFFF ? fmt::format("\\u{:04x}", code) : fmt::format("\\U{:08x}", code);
    } else {
      out += sequence;
    }
    text.remove_prefix(sequence.size());
  }
  return out;
}

}  // namespace mxfp4
