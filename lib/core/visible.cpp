#include "lib/core/visible.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "lib/core/utf8.hpp"

namespace mxfp4 {
namespace {

struct Range {
  uint32_t first;
  uint32_t last;
};

// Unicode 15: general categories Cc (from U+0080 on), Cf, Zl and Zp; and characters that
// are invisible.
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
