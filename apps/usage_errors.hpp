// Errors of a command line that could not be parsed, in this program's own words.
#pragma once

#include <string>
#include <vector>

#include "lib/core/error.hpp"

namespace CLI {
class App;
class Error;
}  // namespace CLI

namespace mxfp4 {

// `words` are the arguments that `app` failed on, `error` what its parser says. The first word that
// is no command, flag or argument is named, with the nearest one: by its letters, its beginning, or
// what other programs call it.
[[nodiscard]] Error usage_error(const CLI::App& app, const CLI::Error& error,
                                const std::vector<std::string>& words);

// "help" and "help COMMAND" as --help would be typed; any other words unchanged.
[[nodiscard]] std::vector<std::string> with_help_flag(const CLI::App& app,
                                                      std::vector<std::string> words);

}  // namespace mxfp4
