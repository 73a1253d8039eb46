// The errors of a command line that cannot be parsed.
#pragma once

#include <string>
#include <vector>

#include "lib/core/error.hpp"

namespace CLI {
class App;
class Error;
}  // namespace CLI

namespace mxfp4 {

// `words` are the arguments that `app` failed to parse, `error` is its parser's error. The result
// names the first word that is not a command or a flag, and the nearest one; else it says what the
// parser says.
[[nodiscard]] Error usage_error(const CLI::App& app, const CLI::Error& error,
                                const std::vector<std::string>& words);

// Replaces "help" and "help COMMAND" by the same with --help; returns other words unchanged.
[[nodiscard]] std::vector<std::string> with_help_flag(const CLI::App& app,
                                                      std::vector<std::string> words);

// Throws Error::usage for a word "--flag=": the parser would take the next word as its value.
void refuse_empty_values(const std::vector<std::string>& words);

}  // namespace mxfp4
