#include "apps/console.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "lib/core/error.hpp"
#include "lib/core/visible.hpp"

namespace mxfp4 {
namespace {

constexpr size_t kWidth = 80;
constexpr int kBarWidth = 20;
constexpr std::chrono::milliseconds kBlink{300};

// A person who cannot be told is no reason to stop.
void tell(const std::string& text) { (void)std::fputs(text.c_str(), stderr); }

// What was asked for must arrive.
void answer(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw Error::output(fmt::format("stdout: cannot be written: {}", std::strerror(errno)));
  }
}

constexpr std::string_view kBold = "\033[1m";
constexpr std::string_view kPlain = "\033[0m";

// Lines as visible() shows them, and where `color` is on our own two marks.
std::string visible_lines(std::string_view text, bool color) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of("\n\033"), text.size());
    out += visible(text.substr(0, end));
    text.remove_prefix(end);
    if (text.empty()) break;
    const bool own = color && (text.starts_with(kBold) || text.starts_with(kPlain));
    const size_t size = own ? kBold.size() : 1;
    const std::string_view mark = text.substr(0, size);
    out += own || mark == "\n" ? std::string(mark) : visible(mark);
    text.remove_prefix(size);
  }
  return out;
}

bool is_terminal(int descriptor) { return isatty(descriptor) == 1; }

// Columns of UTF-8 text: bytes that do not continue a character.
size_t columns(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

// "1:05", "2:00:00"
std::string clock_text(int64_t seconds) {
  if (seconds < 3600) return fmt::format("{}:{:02}", seconds / 60, seconds % 60);
  return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

}  // namespace

Console::Console(const GlobalOptions& options) : options_(options) {
  const bool plain = std::getenv("NO_COLOR") != nullptr;
  color_ = options.color == "always" ||
           (options.color == "auto" && !plain && is_terminal(STDOUT_FILENO));
}

void Console::say(std::string_view line) const {
  if (!options_.quiet && !options_.json) answer(visible(line) + "\n");
}

void Console::result(std::string_view text) const {
  answer(options_.json ? std::string(text) : visible_lines(text, color_));
}

void Console::result_json(nlohmann::ordered_json json) const {
  answered_ = true;
  json["warnings"] = warnings_;
  answer(json.dump(2, ' ', true, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

void Console::warn(std::string_view text) const {
  warnings_.emplace_back(text);
  std::fflush(stdout);
  tell(fmt::format("mxfp4-repack: warning: {}\n", visible(text)));
}

void Console::detail(std::string_view line) const {
  if (options_.verbose > 0) tell(visible(line) + "\n");
}

std::string Console::bold(std::string_view text) const {
  return color_ ? fmt::format("{}{}{}", kBold, text, kPlain) : std::string(text);
}

bool Console::progress_wanted() const {
  if (options_.progress == "auto") return !options_.quiet && is_terminal(STDERR_FILENO);
  return options_.progress == "always";
}

Progress::Progress(const Console& console, int64_t total_bytes)
    : shown_(console.progress_wanted()),
      patient_(!console.progress_always()),
      total_(total_bytes),
      start_(std::chrono::steady_clock::now()) {}

Progress::~Progress() { finish(); }

void Progress::finish() {
  if (!taken_) taken_ = seconds();
  if (std::exchange(drawn_, false)) tell("\r\033[K");
}

double Progress::seconds() const {
  return taken_.value_or(
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count());
}

void Progress::advance(int64_t bytes) {
  done_ += bytes;
  if (!shown_) return;
  const auto now = std::chrono::steady_clock::now();
  if (patient_ && now - start_ < kBlink) return;
  if (drawn_ && now - last_draw_ < std::chrono::milliseconds(100) && done_ < total_) return;
  last_draw_ = now;
  draw();
}

void Progress::draw() {
  drawn_ = true;
  const double share = total_ > 0 ? static_cast<double>(done_) / static_cast<double>(total_) : 1.0;
  const double elapsed = std::max(seconds(), 1e-6);
  const double rate = static_cast<double>(done_) / elapsed;
  const auto left = static_cast<int64_t>(static_cast<double>(total_ - done_) / std::max(rate, 1.0));
  const auto filled = static_cast<size_t>(share * kBarWidth);
  tell(fmt::format("\r\033[K[{:<{}}] {:3.0f} %  {} of {}  {}/s  ETA {}", std::string(filled, '#'),
                   kBarWidth, share * 100, human_bytes(done_), human_bytes(total_),
                   human_bytes(static_cast<int64_t>(rate)), clock_text(left)));
  std::fflush(stderr);
}

std::string count_of(uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string human_bytes(int64_t bytes) {
  static constexpr std::array<std::string_view, 6> kUnits = {"B",   "KiB", "MiB",
                                                             "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{} B", bytes);
  const int decimals = value < 10 ? 2 : value < 100 ? 1 : 0;  // three digits that count
  return fmt::format("{:.{}f} {}", value, decimals, kUnits[unit]);
}

std::vector<std::string> wrap(std::string_view text, size_t width) {
  std::vector<std::string> lines;
  const std::string shown = visible(text);
  text = shown;
  while (columns(text) > width) {
    size_t cut = text.rfind(' ', width);
    if (cut == std::string_view::npos || cut == 0) {
      cut = text.find(' ', width);
      if (cut == std::string_view::npos) break;
    }
    lines.emplace_back(text.substr(0, cut));
    text.remove_prefix(cut + 1);
  }
  lines.emplace_back(text);
  return lines;
}

std::string paragraph(std::string_view text, size_t indent) {
  std::string out;
  for (const std::string& line : wrap(text, kWidth - indent)) {
    out += std::string(indent, ' ') + line + "\n";
  }
  return out;
}

std::string shell_word(std::string_view text) {
  constexpr std::string_view kHarmless =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./=:,@%+-";
  if (!text.empty() && text.find_first_not_of(kHarmless) == std::string_view::npos) {
    return std::string(text);
  }
  // What a terminal would not show as it is, bash reads from $'...'.
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

std::string table(const Console& console, const std::vector<std::vector<std::string>>& rows) {
  if (rows.empty()) return "";
  std::vector<std::vector<std::string>> cells = rows;
  std::vector<size_t> width(rows.front().size(), 0);
  for (auto& row : cells) {
    for (size_t c = 0; c < row.size(); ++c) {
      row[c] = visible(row[c]);
      width[c] = std::max(width[c], columns(row[c]));
    }
  }
  size_t indent = 0;
  for (size_t c = 0; c + 1 < width.size(); ++c) indent += width[c] + 2;
  const size_t last_width = indent + 20 < kWidth ? kWidth - indent : 20;
  std::string out;
  for (size_t r = 0; r < cells.size(); ++r) {
    std::string line;
    for (size_t c = 0; c + 1 < width.size(); ++c) {
      line += cells[r][c] + std::string(width[c] - columns(cells[r][c]) + 2, ' ');
    }
    const std::vector<std::string> last = wrap(cells[r].back(), last_width);
    for (size_t i = 0; i < last.size(); ++i) {
      std::string text = (i == 0 ? line : std::string(indent, ' ')) + last[i];
      text.resize(text.find_last_not_of(' ') + 1);
      out += (r == 0 ? console.bold(text) : text) + "\n";
    }
  }
  return out;
}

}  // namespace mxfp4
