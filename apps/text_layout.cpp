#include "apps/text_layout.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "lib/core/visible.hpp"

namespace mxfp4 {
namespace {

constexpr size_t kUsualWidth = 80;
constexpr size_t kNarrowestTerminal = 20;
constexpr size_t kNarrowestText = 20;   // behind an indent
constexpr size_t kReadableWidth = 100;  // longer lines of text are hard to read

// Columns that a line on stdout may have.
size_t output_width() { return std::max(terminal_width(STDOUT_FILENO), kUsualWidth); }

// Bytes that the first `wanted` columns of UTF-8 text take.
size_t bytes_of_columns(std::string_view text, size_t wanted) {
  size_t at = 0;
  while (at < text.size()) {
    const bool begins = (static_cast<unsigned char>(text[at]) & 0xC0U) != 0x80U;
    if (begins && wanted-- == 0) break;
    ++at;
  }
  return at;
}

// Columns that UTF-8 text takes: its code points, without the console's marks of colour.
size_t columns(std::string_view text) {
  size_t count = 0;
  bool mark = false;
  for (char c : text) {
    if (c == '\033') mark = true;
    if (!mark && (static_cast<unsigned char>(c) & 0xC0U) != 0x80U) ++count;
    if (c == 'm') mark = false;
  }
  return count;
}

// Like wrap(), but the first line has `first_width` columns.
std::vector<std::string> wrap_behind(std::string_view text, size_t first_width, size_t width) {
  std::vector<std::string> lines;
  const std::string shown = visible(text);
  text = shown;
  for (size_t room = first_width; columns(text) > room; room = width) {
    const size_t end = bytes_of_columns(text, std::max<size_t>(room, 1));
    const size_t blank = text.rfind(' ', end);
    const bool at_blank = blank != std::string_view::npos && blank != 0;
    const size_t cut = at_blank ? blank : end;
    lines.emplace_back(text.substr(0, cut));
    text.remove_prefix(at_blank ? cut + 1 : cut);
  }
  lines.emplace_back(text);
  return lines;
}

// Narrows the last column only: people and programs search for whole names.
void fit_last_column(std::vector<size_t>& width, size_t room) {
  constexpr size_t kNarrowestLast = 20;
  size_t before = 0;
  for (size_t c = 0; c + 1 < width.size(); ++c) before += width[c] + 2;
  const size_t left = before + kNarrowestLast < room ? room - before : kNarrowestLast;
  width.back() = std::min(width.back(), left);
}

}  // namespace

size_t terminal_width(int descriptor) {
  winsize size{};
  const bool known = isatty(descriptor) == 1 && ioctl(descriptor, TIOCGWINSZ, &size) == 0;
  return known && size.ws_col > 0 ? std::max<size_t>(size.ws_col, kNarrowestTerminal) : kUsualWidth;
}

size_t text_width() { return std::min(output_width(), kReadableWidth); }

std::string count_of(uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::vector<std::string> wrap(std::string_view text, size_t width) {
  return wrap_behind(text, width, width);
}

void append_wrapped(std::string& out, std::string first, size_t indent, std::string_view text) {
  const size_t width = std::max(text_width(), indent + kNarrowestText);
  std::string begin = std::move(first);
  for (const std::string& part : wrap_behind(text, width - columns(begin), width - indent)) {
    begin += part;
    begin.erase(begin.find_last_not_of(' ') + 1);
    out += begin + "\n";
    begin.assign(indent, ' ');
  }
}

std::string shell_word(std::string_view text) {
  constexpr std::string_view kHarmless =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./=:,@%+-";
  if (!text.empty() && text.find_first_not_of(kHarmless) == std::string_view::npos) {
    return std::string(text);
  }
  // Text with characters that a terminal does not show becomes $'...', which bash reads.
  if (visible(text) != text) {
    std::string word = "$'";
    for (char c : text) {
      const bool plain = kHarmless.find(c) != std::string_view::npos;
      word += plain ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
    return word + "'";
  }
  std::string word = "'";
  for (char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

std::string pace(int64_t written, int64_t moved, double seconds) {
  const auto rate = static_cast<int64_t>(static_cast<double>(moved) / std::max(seconds, 1e-6));
  return fmt::format("{} in {:.1f} s, {}/s", human_bytes(written), seconds, human_bytes(rate));
}

void append_command(std::string& out, const std::string& first, size_t indent,
                    const std::vector<std::string>& parts) {
  const size_t width = output_width();
  std::string line = first;
  bool fresh = true;  // the line has no part yet
  for (const std::string& part : parts) {
    if (!fresh && line.size() + 1 + part.size() + 2 > width) {
      out += line + " \\\n";
      line = std::string(indent, ' ');
      fresh = true;
    }
    line += fresh ? part : " " + part;
    fresh = false;
  }
  out += line + "\n";
}

std::string align_table(const std::vector<std::vector<std::string>>& rows,
                        const std::function<std::string(std::string_view)>& bold) {
  if (rows.empty()) return "";
  std::vector<size_t> width(rows.front().size(), 0);
  for (const auto& row : rows) {
    for (size_t c = 0; c < row.size(); ++c) {
      width[c] = std::max(width[c], columns(visible(row[c])));
    }
  }
  fit_last_column(width, output_width());
  std::string out;
  for (size_t r = 0; r < rows.size(); ++r) {
    std::vector<std::vector<std::string>> cells;
    size_t lines = 1;
    for (size_t c = 0; c < width.size(); ++c) {
      cells.push_back(wrap(rows[r][c], width[c]));
      lines = std::max(lines, cells.back().size());
    }
    for (size_t i = 0; i < lines; ++i) {
      std::string line;
      for (size_t c = 0; c < width.size(); ++c) {
        const std::string text = i < cells[c].size() ? cells[c][i] : "";
        line += text + std::string(width[c] - std::min(width[c], columns(text)) + 2, ' ');
      }
      line.resize(line.find_last_not_of(' ') + 1);
      out += (r == 0 ? bold(line) : line) + "\n";
    }
  }
  return out;
}

}  // namespace mxfp4
