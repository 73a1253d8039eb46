#include "apps/console.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "apps/text_layout.hpp"
#include "lib/core/error.hpp"
#include "lib/core/visible.hpp"

namespace mxfp4 {
namespace {

constexpr size_t kWidestBar = 40;
constexpr size_t kNarrowestBar = 10;
// Sets the seconds between lines of progress if stderr is not a terminal; for logs and for tests.
double seconds_between_lines() {
  const char* given = std::getenv("MXFP4_REPACK_PROGRESS_SECONDS");
  const double seconds = given == nullptr ? 0 : std::strtod(given, nullptr);
  return seconds > 0 ? seconds : 60;
}

constexpr std::chrono::milliseconds kBlink{300};

// Ignores a failure to write: it could be reported nowhere else.
void tell(const std::string& text) { (void)std::fputs(text.c_str(), stderr); }

// Throws Error::output if the result cannot be written.
void answer(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw Error::output(fmt::format("stdout: cannot be written: {}", std::strerror(errno)));
  }
}

constexpr std::string_view kBold = "\033[1m";
constexpr std::string_view kGreen = "\033[32m";
constexpr std::string_view kRed = "\033[31m";
constexpr std::string_view kPlain = "\033[0m";

// The console's own mark at the beginning of `text`; empty if there is none.
std::string_view own_mark(std::string_view text) {
  for (std::string_view mark : {kBold, kGreen, kRed, kPlain}) {
    if (text.starts_with(mark)) return mark;
  }
  return "";
}

// `text` as visible() shows it, but `color` keeps the console's own marks, and `lines` keeps
// newlines.
std::string visible_marked(std::string_view text, bool color, bool lines) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of("\n\033"), text.size());
    out += visible(text.substr(0, end));
    text.remove_prefix(end);
    if (text.empty()) break;
    std::string_view mark = color ? own_mark(text) : "";
    const bool own = !mark.empty();
    if (!own) mark = text.substr(0, 1);
    const bool as_it_is = own || (lines && mark == "\n");
    out += as_it_is ? std::string(mark) : visible(mark);
    text.remove_prefix(mark.size());
  }
  return out;
}

bool is_terminal(int descriptor) { return isatty(descriptor) == 1; }

bool wants_color(const std::string& asked, int descriptor) {
  if (!asked.empty() && asked != "auto") return asked == "always";
  const auto is_set = [](const char* name, std::string_view value) {
    const char* text = std::getenv(name);
    return text != nullptr && (value.empty() ? *text != '\0' : text == value);
  };
  return is_terminal(descriptor) && !is_set("NO_COLOR", "") && !is_set("TERM", "dumb");
}

// "1:05", "2:00:00"
std::string clock_text(int64_t seconds) {
  if (seconds < 3600) return fmt::format("{}:{:02}", seconds / 60, seconds % 60);
  return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

}  // namespace

Console::Console(const GlobalOptions& options) : options_(options) {
  color_ = wants_color(options.color, STDOUT_FILENO);
  error_color_ = wants_color(options.color, STDERR_FILENO);
}

void Console::say(std::string_view line) const {
  if (options_.quiet || options_.json) return;
  const std::string text = visible_marked(line, color_, false);
  if (!is_terminal(STDOUT_FILENO)) return answer(text + "\n");
  std::string wrapped;
  append_wrapped(wrapped, "", 2, text);
  answer(wrapped);
}

void Console::say_lines(std::string_view text) const {
  if (!options_.quiet && !options_.json) answer(visible_marked(text, color_, true));
}

void Console::say_next(std::string_view what) const { say(fmt::format("next: {}", what)); }

void Console::result(std::string_view text) const {
  answer(options_.json ? std::string(text) : visible_marked(text, color_, true));
}

void Console::result_json(nlohmann::ordered_json json) const {
  answered_ = true;
  json["warnings"] = warnings_;
  answer(json.dump(2, ' ', true, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

void Console::warn(std::string_view text) const {
  warnings_.emplace_back(text);
  std::fflush(stdout);
  const std::string_view begin = error_color_ ? kBold : "";
  const std::string_view end = error_color_ ? kPlain : "";
  tell(fmt::format("{}mxfp4-repack: warning:{} {}\n", begin, end, visible(text)));
}

void Console::error(std::string_view text, std::string_view hint) const {
  std::fflush(stdout);
  const std::string begin = error_color_ ? fmt::format("{}{}", kBold, kRed) : "";
  const std::string_view end = error_color_ ? kPlain : "";
  // Made as a whole first: without memory for the hint, the caller says something else.
  std::string lines = fmt::format("{}mxfp4-repack: error:{} {}\n", begin, end, visible(text));
  if (!hint.empty()) {
    lines += fmt::format("{}hint:{} {}\n", error_color_ ? kBold : "", end, visible(hint));
  }
  tell(lines);
}

void Console::note(std::string_view text) const {
  if (!options_.quiet) tell(fmt::format("mxfp4-repack: {}\n", visible(text)));
}

void Console::detail(std::string_view line) const {
  if (options_.verbose > 0) tell(visible(line) + "\n");
}

std::string Console::table(const std::vector<std::vector<std::string>>& rows) const {
  return align_table(rows, [this](std::string_view text) { return bold(text); });
}

std::string Console::bold(std::string_view text) const {
  return color_ ? fmt::format("{}{}{}", kBold, text, kPlain) : std::string(text);
}

std::string Console::good(std::string_view text) const {
  return color_ ? fmt::format("{}{}{}", kGreen, text, kPlain) : std::string(text);
}

std::string Console::bad(std::string_view text) const {
  return color_ ? fmt::format("{}{}{}", kRed, text, kPlain) : std::string(text);
}

Console::ProgressStyle Console::progress_style() const {
  if (options_.progress == "always") return ProgressStyle::kBar;
  if (options_.progress == "never" || options_.quiet) return ProgressStyle::kNone;
  return is_terminal(STDERR_FILENO) ? ProgressStyle::kBar : ProgressStyle::kLines;
}

Progress::Progress(const Console& console, int64_t total_bytes)
    : style_(console.progress_style()),
      patient_(!console.progress_always()),
      total_(total_bytes),
      start_(std::chrono::steady_clock::now()),
      last_draw_(start_) {}

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
  if (style_ == Console::ProgressStyle::kNone) return;
  const auto now = std::chrono::steady_clock::now();
  if (style_ == Console::ProgressStyle::kLines) {
    static const std::chrono::duration<double> kBetween(seconds_between_lines());
    if (now - last_draw_ < kBetween) return;
  } else {
    if (patient_ && now - start_ < kBlink) return;
    if (drawn_ && now - last_draw_ < std::chrono::milliseconds(100) && done_ < total_) return;
  }
  last_draw_ = now;
  draw();
}

void Progress::draw() {
  const double share = total_ > 0 ? static_cast<double>(done_) / static_cast<double>(total_) : 1.0;
  const double elapsed = std::max(seconds(), 1e-6);
  const double rate = static_cast<double>(done_) / elapsed;
  const auto left = static_cast<int64_t>(static_cast<double>(total_ - done_) / std::max(rate, 1.0));
  // If the parts do not fit, the first are left out, so the most important one is last.
  const std::vector<std::string> parts = {
      fmt::format("{} of {}", human_bytes(done_), human_bytes(total_)),
      human_bytes(static_cast<int64_t>(rate)) + "/s", "ETA " + clock_text(left)};
  const auto text_from = [&](size_t first) {
    std::string text = fmt::format("{:3.0f} %", share * 100);
    for (size_t i = first; i < parts.size(); ++i) text += "  " + parts[i];
    return text;
  };
  if (style_ == Console::ProgressStyle::kLines) {
    tell("mxfp4-repack: " + text_from(0).substr(text_from(0).find_first_not_of(' ')) + "\n");
    return;
  }
  drawn_ = true;
  const size_t width = terminal_width(STDERR_FILENO) - 1;  // the last column may wrap
  size_t first = 0;
  while (first < parts.size() && text_from(first).size() > width) ++first;
  const std::string text = text_from(first);
  std::string bar;
  if (text.size() + 3 + kNarrowestBar <= width) {
    const size_t room = std::min(width - text.size() - 3, kWidestBar);
    const auto filled = static_cast<size_t>(share * static_cast<double>(room));
    bar = fmt::format("[{:<{}}] ", std::string(filled, '#'), room);
  }
  tell(fmt::format("\r\033[K{}{}", bar, text));
  std::fflush(stderr);
}

}  // namespace mxfp4
