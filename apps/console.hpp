// Writes what a person sees: warnings and progress to stderr, results to stdout.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mxfp4 {

struct GlobalOptions {
  bool json = false;
  std::string progress = "auto";  // auto, always, never
  std::string color{};            // likewise; empty: not given, auto
  int verbose = 0;
  bool quiet = false;
};

class Console {
 public:
  explicit Console(const GlobalOptions& options);

  [[nodiscard]] bool json() const { return options_.json; }
  [[nodiscard]] int verbose() const { return options_.verbose; }

  // One line on stdout, unless --quiet or --json; on a terminal broken at words. Throws
  // Error::output, as do those below.
  void say(std::string_view line) const;
  // The same of lines that are laid out, each with its end.
  void say_lines(std::string_view text) const;
  // "next: <what>" on a line of its own, likewise: the command to type, or what to do.
  void say_next(std::string_view what) const;
  // Text on stdout, always: a result that the user asked for.
  void result(std::string_view text) const;
  // The document of --json, with all warnings so far as its member `warnings`; once a run. Bytes of
  // paths that are not UTF-8 are replaced.
  void result_json(nlohmann::ordered_json json) const;
  // Whether result_json() was called.
  [[nodiscard]] bool answered() const { return answered_; }
  // "mxfp4-repack: warning: <text>" on stderr, always.
  void warn(std::string_view text) const;
  // "mxfp4-repack: error: <text>" on stderr, and "hint: <hint>" unless that is empty.
  void error(std::string_view text, std::string_view hint) const;
  // "mxfp4-repack: <text>" on stderr, unless --quiet.
  void note(std::string_view text) const;
  // One line on stderr, with -v.
  void detail(std::string_view line) const;

  // `text` in bold, green or red if stdout takes colour.
  [[nodiscard]] std::string bold(std::string_view text) const;
  [[nodiscard]] std::string good(std::string_view text) const;
  [[nodiscard]] std::string bad(std::string_view text) const;

  // Rows as aligned columns (align_table), the heading in bold.
  [[nodiscard]] std::string table(const std::vector<std::vector<std::string>>& rows) const;

  // How progress is shown: not at all, as a bar that is redrawn, or as a line now and then, for
  // logs.
  enum class ProgressStyle : uint8_t { kNone, kBar, kLines };
  [[nodiscard]] ProgressStyle progress_style() const;
  [[nodiscard]] bool progress_always() const { return options_.progress == "always"; }

 private:
  GlobalOptions options_;
  bool color_ = false;        // on stdout
  bool error_color_ = false;  // on stderr
  mutable std::vector<std::string> warnings_;
  mutable bool answered_ = false;
};

// Shows share, bytes, rate and time left on stderr. On a terminal that is a bar, or nothing if all
// is done in less than a blink; elsewhere a line a minute. Call finish() before anything else is
// written to the terminal.
class Progress {
 public:
  Progress(const Console& console, int64_t total_bytes);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `bytes` more bytes are done. One call at a time.
  void advance(int64_t bytes);
  // Erases the bar, if there is one, and stops the clock.
  void finish();
  // Seconds from construction to finish(), or until now.
  [[nodiscard]] double seconds() const;

 private:
  void draw();

  Console::ProgressStyle style_;
  bool patient_;  // shows nothing at first, in case all is done soon
  bool drawn_ = false;
  int64_t total_;
  int64_t done_ = 0;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point last_draw_;
  std::optional<double> taken_;  // seconds, once finished
};

}  // namespace mxfp4
