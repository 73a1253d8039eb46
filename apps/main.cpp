// The program: parse, run one command, and turn whatever went wrong into one line and an exit code.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "apps/command_line.hpp"
#include "apps/commands.hpp"
#include "apps/interrupt.hpp"
#include "lib/core/error.hpp"

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

// One line, whatever stood in the file that caused it.
std::string one_line(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20 || c == 0x7F; }, ' ');
  return text;
}

int fail(const std::string& message, const std::string& hint, int code) {
  std::fflush(stdout);
  std::string text = fmt::format("mxfp4-repack: error: {}\n", one_line(message));
  if (!hint.empty()) text += fmt::format("hint: {}\n", one_line(hint));
  (void)std::fputs(text.c_str(), stderr);
  return code;
}

int fail(const mxfp4::Error& error) {
  const std::string hint =
      error.kind() == ErrorKind::kInternal && error.hint_text().empty()
          ? "this is a bug; please report it with the command line and the output of --version"
          : error.hint_text();
  return fail(error.what(), hint, exit_code(error.kind()));
}

// A mapped page that is gone: somebody truncated a file while it was read. No code that reads a map
// can be told so in another way; only async-signal-safe calls are allowed here.
extern "C" void end_on_lost_page(int) {
  constexpr std::string_view kText =
      "mxfp4-repack: error: an input file: became shorter while it was read\n";
  const ssize_t written = ::write(STDERR_FILENO, kText.data(), kText.size());
  (void)written;
  ::_exit(mxfp4::kInput);
}

void end_cleanly_on_lost_pages() {
  struct sigaction action {};
  action.sa_handler = end_on_lost_page;
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  end_cleanly_on_lost_pages();
  CLI::App app{
      "Repack MXFP4 Mixture-of-Experts weights, offline, for the kernel that will serve them",
      "mxfp4-repack"};
  mxfp4::CommandLine line;
  try {
    mxfp4::declare_commands(app, line);
    app.parse(argc, argv);
    if (line.convert.resources.threads == 0) {
      const int threads = mxfp4::available_threads();
      line.convert.resources.threads = threads;
      line.verify.resources.threads = std::max(line.verify.resources.threads, threads);
      line.unpack.resources.threads = std::max(line.unpack.resources.threads, threads);
      line.finalize.resources.threads = std::max(line.finalize.resources.threads, threads);
    }
    return line.run(mxfp4::Console(line.global));
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    const mxfp4::UnknownWord unknown = mxfp4::find_unknown_word(app, words);
    return fail(
        unknown.message.empty() ? error.what() : unknown.message,
        unknown.hint.empty() ? "mxfp4-repack --help shows commands and flags" : unknown.hint,
        mxfp4::kUsage);
  } catch (const mxfp4::Interrupted& interrupted) {
    fmt::print(stderr, "mxfp4-repack: interrupted; --resume goes on from what is complete\n");
    return interrupted.exit_code();
  } catch (const mxfp4::Error& error) {
    return fail(error);
  } catch (const std::bad_alloc&) {
    return fail("out of memory", "a smaller --memory needs less", mxfp4::kInternal);
  } catch (const std::exception& error) {
    return fail(error.what(), "this is a bug; please report it with the command line",
                mxfp4::kInternal);
  }
}
