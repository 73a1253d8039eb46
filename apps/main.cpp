// The program: parse, run one command, and turn whatever went wrong into one line and an exit code.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include "apps/command_line.hpp"
#include "apps/commands.hpp"
#include "apps/interrupt.hpp"
#include "formats/os/available_threads.hpp"
#include "formats/os/lost_pages.hpp"
#include "lib/core/error.hpp"
#include "lib/core/visible.hpp"
#include "lib/exec/pipeline.hpp"
#include "lib/kernels/instruction_sets.hpp"

namespace {

using mxfp4::ErrorKind;

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
      return mxfp4::kUsage;
    case ErrorKind::kInput:
      return mxfp4::kInput;
    case ErrorKind::kUnsupported:
      return mxfp4::kUnsupported;
    case ErrorKind::kOutput:
      return mxfp4::kOutput;
    case ErrorKind::kInternal:
      break;
  }
  return mxfp4::kInternal;
}

int fail(const std::string& message, const std::string& hint, int code) {
  std::fflush(stdout);
  std::string text = fmt::format("mxfp4-repack: error: {}\n", mxfp4::visible(message));
  if (!hint.empty()) text += fmt::format("hint: {}\n", mxfp4::visible(hint));
  (void)std::fputs(text.c_str(), stderr);
  return code;
}

// Zeros where a file was cut off may have led to any other error.
int fail(const mxfp4::Error& error) {
  if (const auto file = mxfp4::file_that_lost_pages()) {
    return fail(*file + ": became shorter while it was read", "", mxfp4::kInput);
  }
  const std::string hint =
      error.kind() == ErrorKind::kInternal && error.hint_text().empty()
          ? "this is a bug; please report it with the command line and the output of --version"
          : error.hint_text();
  return fail(error.what(), hint, exit_code(error.kind()));
}

// A stream that the caller closed must not become the first file that is opened. What stands in
// its place can be neither read nor written, as before.
void occupy_standard_streams() {
  int descriptor = 0;
  while (descriptor >= 0 && descriptor <= STDERR_FILENO) descriptor = open("/", O_RDONLY);
  if (descriptor >= 0) close(descriptor);
}

// --help, --version
int show(const CLI::App& app, const CLI::Success& success) {
  std::ostringstream text;
  const int code = app.exit(success, text, text);
  try {
    mxfp4::Console({}).result(text.str());
  } catch (const mxfp4::Error& error) {
    return fail(error);
  }
  return code;
}

void choose_instruction_set() {
  constexpr const char* kVariable = "MXFP4_REPACK_SIMD";
  const char* name = std::getenv(kVariable);
  if (name == nullptr || mxfp4::kernels::use_instruction_set(name)) return;
  throw mxfp4::Error::usage(fmt::format("{}: expected one of {}, found {}", kVariable,
                                        fmt::join(mxfp4::kernels::instruction_sets(), ", "), name));
}

std::array<mxfp4::RunLimits*, 4> resources_of(mxfp4::CommandLine& line) {
  return {&line.convert.resources, &line.verify.resources, &line.unpack.resources,
          &line.finalize.resources};
}

// No command gets more threads than the system lets it start; who asked for more is told.
void choose_threads(mxfp4::CommandLine& line) {
  int wanted = mxfp4::available_threads();
  for (const mxfp4::RunLimits* resources : resources_of(line)) {
    wanted = std::max(wanted, resources->threads);
  }
  const int startable = mxfp4::startable_threads(wanted);
  for (mxfp4::RunLimits* resources : resources_of(line)) {
    if (resources->threads > startable) {
      mxfp4::Console(line.global)
          .warn(fmt::format("--threads {}: only {} can be started here (ulimit -u, or a cgroup's "
                            "pids.max)",
                            resources->threads, startable));
    }
    const int given = resources->threads == 0 ? mxfp4::available_threads() : resources->threads;
    resources->threads = std::min(given, startable);
    if (resources->memory == 0) resources->memory = mxfp4::default_memory(resources->threads);
  }
}

}  // namespace

int main(int argc, char** argv) {
  occupy_standard_streams();
  mxfp4::survive_lost_pages();
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow fails as on a full disk
  CLI::App app{
      "Repack MXFP4 Mixture-of-Experts weights, offline, for the kernel that will serve them",
      "mxfp4-repack"};
  mxfp4::CommandLine line;
  try {
    mxfp4::declare_commands(app, line);
    mxfp4::refuse_empty_values({argv + 1, argv + argc});
    app.parse(argc, argv);
    choose_instruction_set();
    choose_threads(line);
    const int code = line.run(mxfp4::Console(line.global));
    mxfp4::check_lost_pages();
    return code;
  } catch (const CLI::Success& success) {
    return show(app, success);
  } catch (const CLI::ParseError& error) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    const mxfp4::UnknownWord unknown = mxfp4::find_unknown_word(app, words);
    return fail(
        unknown.message.empty() ? error.what() : unknown.message,
        unknown.hint.empty() ? "mxfp4-repack --help shows commands and flags" : unknown.hint,
        mxfp4::kUsage);
  } catch (const mxfp4::Interrupted& interrupted) {
    (void)std::fputs(fmt::format("mxfp4-repack: interrupted; {}\n", interrupted.what()).c_str(),
                     stderr);
    return interrupted.exit_code();
  } catch (const mxfp4::Error& error) {
    return fail(error);
  } catch (const std::filesystem::filesystem_error& error) {
    // Writers name what they could not do; what is left is looking at paths.
    return fail(fmt::format("{}: {}", error.path1().string(), error.code().message()), "",
                mxfp4::kInput);
  } catch (const std::bad_alloc&) {
    return fail("out of memory", "a smaller --memory or fewer --threads need less", mxfp4::kOutput);
  } catch (const std::exception& error) {
    return fail(error.what(), "this is a bug; please report it with the command line",
                mxfp4::kInternal);
  }
}
