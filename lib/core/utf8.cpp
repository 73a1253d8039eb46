#include "lib/core/utf8.hpp"

namespace mxfp4 {

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

}  // namespace mxfp4
