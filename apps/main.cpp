// The program: parses, runs one command, and turns an error into one line and an exit code.
#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/command_line.hpp"
#include "apps/commands.hpp"
#include "apps/help_text.hpp"
#include "apps/interrupt.hpp"
#include "apps/json_output.hpp"
#include "apps/usage_errors.hpp"
#include "apps/version.hpp"
#include "formats/os/available_threads.hpp"
#include "formats/remote/files_at.hpp"
#include "lib/core/error.hpp"
#include "lib/core/visible.hpp"
#include "lib/exec/pipeline.hpp"
#include "lib/kernels/instruction_sets.hpp"

namespace {

using mxfp4::Error;

constexpr const char* kReport =
    "this is a bug; please report it with the command line and the output of --version";

bool wants_json(const std::vector<std::string>& words) {
  const auto end = std::ranges::find(words, "--");
  return std::find(words.begin(), end, "--json") != end;
}

// Ends a run that failed: writes one line to stderr, and with --json also the document.
class Failure {
 public:
  // The first error may come before the flags are parsed, so the words are searched for --json.
  explicit Failure(const std::vector<std::string>& words)
      : json_(wants_json(words)), own_console_({.json = json_}) {}

  void set_command(std::string name) { command_ = std::move(name); }
  void set_console(const mxfp4::Console& console) { console_ = &console; }
  [[nodiscard]] const mxfp4::Console& console() const {
    return console_ != nullptr ? *console_ : own_console_;
  }

  int report(const Error& error) const {
    if (error.kind() != mxfp4::ErrorKind::kInternal || !error.hint_text().empty())
      return say(error);
    return say(Error(error).hint(kReport));
  }

  int report(const mxfp4::Interrupted& interrupted) const {
    const std::string text = fmt::format("interrupted; {}", interrupted.what());
    (void)std::fputs(fmt::format("mxfp4-repack: {}\n", text).c_str(), stderr);
    if (json_) print(mxfp4::error_json("interrupted", text, "", interrupted.exit_code()));
    return interrupted.exit_code();
  }

 private:
  int say(const Error& error) const {
    std::fflush(stdout);
    console().error(error.what(), error.hint_text());
    if (json_) print(mxfp4::error_json(error));
    return mxfp4::exit_code_of(error.kind());
  }

  // Prints nothing if the command printed its document, which names the refusal.
  void print(mxfp4::Json error) const {
    if (console().answered()) return;
    mxfp4::Json document = mxfp4::json_document(command_);
    document["error"] = std::move(error);
    try {
      console().result_json(std::move(document));
    } catch (const Error&) {
      return;  // stdout cannot be written; the first error counts
    }
  }

  bool json_;
  std::string command_;
  const mxfp4::Console* console_ = nullptr;  // null: flags were not parsed
  mxfp4::Console own_console_;
};

// Opens a directory in place of each standard stream that the caller closed, so that no file that
// is opened later takes its number. A directory can be neither read nor written.
void occupy_standard_streams() {
  int descriptor = 0;
  while (descriptor >= 0 && descriptor <= STDERR_FILENO) descriptor = open("/", O_RDONLY);
  if (descriptor >= 0) close(descriptor);
}

// Prints --help or --version.
int show(const CLI::App& app, const CLI::Success& success, const Failure& failure) {
  std::ostringstream text;
  const int code = app.exit(success, text, text);
  try {
    failure.console().result(text.str());
  } catch (const Error& error) {
    return failure.report(error);
  }
  return code;
}

// Takes no memory.
int say_no_memory() noexcept {
  constexpr std::string_view kText = "mxfp4-repack: error: out of memory\n";
  (void)!::write(STDERR_FILENO, kText.data(), kText.size());
  return mxfp4::exit_code_of(mxfp4::ErrorKind::kOutput);
}

// Not even the error's line may find memory.
int report_no_memory(const Failure& failure) {
  try {
    return failure.report(
        Error::output("out of memory").hint("a smaller --memory or fewer --threads need less"));
  } catch (const std::bad_alloc&) {
    return say_no_memory();
  }
}

// What libraries declare as never throwing, as the step to a directory's next entry, needs memory, too.
// What is left then is what a kill leaves.
std::atomic<bool> ran_out{false};
std::terminate_handler usual_end = nullptr;
void end_without_memory() {
  if (ran_out) ::_exit(say_no_memory());
  usual_end();
}

void choose_instruction_set() {
  constexpr const char* kVariable = "MXFP4_REPACK_SIMD";
  const char* name = std::getenv(kVariable);
  if (name == nullptr || *name == '\0' || mxfp4::kernels::use_instruction_set(name)) return;
  throw Error::usage(fmt::format("{}: expected one of {}, found {}", kVariable,
                                 fmt::join(mxfp4::kernels::instruction_sets(), ", "), name));
}

std::array<mxfp4::RunLimits*, 4> resources_of(mxfp4::CommandLine& line) {
  return {&line.convert.resources, &line.verify.resources, &line.unpack.resources,
          &line.finalize.resources};
}

// Limits threads to the number that the system lets a process start, and warns if more were
// requested.
void choose_threads(mxfp4::CommandLine& line) {
  for (mxfp4::RunLimits* resources : resources_of(line)) {
    if (resources->threads == 0) resources->threads = mxfp4::available_threads();
    resources->memory_fixed = resources->memory != 0;
    if (resources->memory == 0) resources->memory = mxfp4::default_memory(resources->threads);
  }
}

int run(int argc, char** argv) {
  occupy_standard_streams();
  // Freed buffers shall go back to the system at once: the allocator would keep buffers of up to
  // 32 MiB, beyond the budget of --memory.
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  std::signal(SIGXFSZ, SIG_IGN);  // so that a file that may not grow is an error, as on a full disk
  CLI::App app{
      "Repack MXFP4 Mixture-of-Experts weights, offline, for the kernel that will serve them",
      "mxfp4-repack"};
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  mxfp4::CommandLine line;
  std::optional<mxfp4::Console> console;
  Failure failure(words);
  try {
    mxfp4::declare_commands(app, line);
    if (words.empty()) words.emplace_back("--help");
    if (words.front() == "help") {
      words.erase(words.begin());
      words.emplace_back("--help");
    }
    const CLI::App* command = mxfp4::command_in(app, words);
    if (command != nullptr) failure.set_command(command->get_name());
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    failure.set_console(console.emplace(line.global));
    if (line.version) return mxfp4::print_version(*console);
    if (!line.run) throw Error::usage("no command").hint("mxfp4-repack --help shows them");
    choose_instruction_set();
    const auto far = mxfp4::keep_far_files();
    choose_threads(line);
    return line.run(*console);
  } catch (const CLI::Success& success) {
    return show(app, success, failure);
  } catch (const CLI::ParseError& error) {
    return failure.report(mxfp4::usage_error(app, error, words));
  } catch (const mxfp4::Interrupted& interrupted) {
    return failure.report(interrupted);
  } catch (const Error& error) {
    return failure.report(error);
  } catch (const std::filesystem::filesystem_error& error) {
    // Code that writes throws Error, so this error is about a path that is read.
    return failure.report(Error::input(error.code().message()).in_file(error.path1().string()));
  } catch (const std::bad_alloc&) {
    return report_no_memory(failure);
  } catch (const std::exception& error) {
    return failure.report(Error::internal(error.what()));
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::set_new_handler([] {
    ran_out = true;
    throw std::bad_alloc();
  });
  usual_end = std::set_terminate(end_without_memory);
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) {
    return say_no_memory();  // before there was a command
  }
}
