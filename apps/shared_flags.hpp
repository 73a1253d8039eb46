// Flags that several commands have, and checks that apply to every flag.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/console.hpp"
#include "apps/options.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {

// The group of flags that say how a command answers, and nothing of what.
inline constexpr const char* kOutputGroup = "Output";

// Accepts the values of a short list. The error for another value gives the nearest.
[[nodiscard]] CLI::Validator one_of(std::string what, std::vector<std::string> known);

// For transform(). Accepts whole numbers from `lowest` to `highest` and takes their leading zeros
// away, which the parser would read as octal. The error for another value gives these two.
[[nodiscard]] CLI::Validator number_in(int64_t lowest, int64_t highest);

// Declare a flag with a value, of which `kind` is a word in help, and one without.
template <class Value>
CLI::Option* add_value(CLI::App& command, const std::string& group, const std::string& name,
                       Value& value, const std::string& text, const std::string& kind) {
  return command.add_option(name, value, text)->option_text(kind)->group(group);
}
inline CLI::Option* add_switch(CLI::App& command, const std::string& group, const std::string& name,
                               bool& value, const std::string& text) {
  return command.add_flag(name, value, text)->group(group);
}

// Declare flags that fill `flags`, which must live until `command` is parsed.
// All that say what is asked of INPUT, and what will serve.
void add_request_flags(CLI::App& command, RequestFlags& flags);
// The flags of a machine and process on which a blob is to fit: what may differ from its own.
void add_fit_flags(CLI::App& command, RequestFlags& flags);
CLI::Option* add_style_flag(CLI::App& command, RequestFlags& flags, const std::string& group);
CLI::Option* add_model_config(CLI::App& command, FlagFile& file, const std::string& group);
void add_resource_flags(CLI::App& command, RunLimits& options);
void add_global_flags(CLI::App& command, GlobalOptions& options);

// The flags and arguments that were typed, without the group "Output" and switches that are off.
[[nodiscard]] std::vector<std::string> given_flags(const CLI::App& command);

// Makes all flags and arguments that `command` has by now take exactly one value that is not empty:
// a script's unset variable must not count as a flag that was not given, and no flag may take more
// than one word.
void check_values(CLI::App& command);

}  // namespace mxfp4
