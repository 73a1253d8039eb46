// What a person sees: warnings and progress on stderr, results on stdout.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/options.hpp"

namespace mxfp4 {

class Console {
 public:
  explicit Console(const GlobalOptions& options);

  [[nodiscard]] bool json() const { return options_.json; }
  [[nodiscard]] int verbose() const { return options_.verbose; }

  // One line on stdout, unless --quiet.
  void say(std::string_view line) const;
  // Raw text on stdout, always: a result that was asked for. Throws Error::output.
  void result(std::string_view text) const;
  // The document of --json, with all warnings so far as its member `warnings`; once a run. Paths
  // may be any bytes: what is not UTF-8 is replaced.
  void result_json(nlohmann::ordered_json json) const;
  // Whether result_json() was called.
  [[nodiscard]] bool answered() const { return answered_; }
  // "mxfp4-repack: warning: <text>" on stderr, always.
  void warn(std::string_view text) const;
  // "mxfp4-repack: error: <text>" on stderr, and "hint: <hint>" unless that is empty.
  void error(std::string_view text, std::string_view hint) const;
  // "mxfp4-repack: <text>" on stderr, unless --quiet.
  void note(std::string_view text) const;
  // On stderr with -v.
  void detail(std::string_view line) const;

  // `text` in bold, green or red where stdout is a terminal that may show it.
  [[nodiscard]] std::string bold(std::string_view text) const;
  [[nodiscard]] std::string good(std::string_view text) const;
  [[nodiscard]] std::string bad(std::string_view text) const;

  // How progress is told: not at all, as a bar that is drawn again and again, or as a line now and
  // then, for logs.
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

// Share, bytes, rate and time left on stderr: on a terminal a bar as wide as that, nothing where all
// is done in less than a blink; elsewhere a line a minute. Whatever is said next on the same terminal
// needs finish() first.
class Progress {
 public:
  Progress(const Console& console, int64_t total_bytes);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `bytes` more are done. One thread at a time.
  void advance(int64_t bytes);
  // Wipes the bar, if there is one, and stops the clock.
  void finish();
  // From construction to finish().
  [[nodiscard]] double seconds() const;

 private:
  void draw();

  Console::ProgressStyle style_;
  bool patient_;  // draws only what takes a while
  bool drawn_ = false;
  int64_t total_;
  int64_t done_ = 0;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point last_draw_;
  std::optional<double> taken_;  // seconds, once finished
};

}  // namespace mxfp4
