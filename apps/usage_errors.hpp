// Puts errors of a command line that cannot be parsed into this program's own words.
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
// names the first word that is not a command, flag or argument, and the nearest one: by its
// letters, its beginning, or what other programs call it.
[[nodiscard]] Error usage_error(const CLI::App& app, const CLI::Error& error,
                                const std::vector<std::string>& words);

// Replaces "help" and "help COMMAND" by the same with --help; returns other words unchanged.
[[nodiscard]] std::vector<std::string> with_help_flag(const CLI::App& app,
                                                      std::vector<std::string> words);

// Throws Error::usage for a word "--flag=": the parser would take the next word as its value.
void refuse_empty_values(const std::vector<std::string>& words);

}  // namespace mxfp4
