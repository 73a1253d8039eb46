// The errors of a command line that cannot be parsed: the parser's own words, but for a command or flag that
// is not known, which is named with the nearest one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/core/error.hpp"

namespace CLI {
class App;
class Error;
}  // namespace CLI

namespace mxfp4 {

// `words` are the arguments that `app` failed to parse, `error` is its parser's error.
[[nodiscard]] Error usage_error(const CLI::App& app, const CLI::Error& error,
                                const std::vector<std::string>& words);

// The command that the words name, whether or not they can be parsed; null if none.
[[nodiscard]] const CLI::App* command_in(const CLI::App& app,
                                         const std::vector<std::string>& words);

// The engines' own flags and variables that people type in vain: the word to use here, or why the experts'
// bytes do not depend on it. Empty for other words.
[[nodiscard]] std::string_view engine_word(std::string_view name);

}  // namespace mxfp4
