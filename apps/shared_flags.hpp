// Flags that several commands have, and what every flag is held to.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/options.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {

// A value out of a short list; another one is refused with the nearest.
[[nodiscard]] CLI::Validator one_of(std::string what, std::vector<std::string> known);

// A whole number from `lowest` to `highest`; anything else is refused with these two.
[[nodiscard]] CLI::Validator number_in(int64_t lowest, int64_t highest);

// A flag that names a small file, which is read when it is needed.
void add_file(CLI::App& command, const std::string& name, FlagFile& file, const std::string& text,
              const std::string& group);

// `options` outlive the parsing of `command`.
void add_machine_flags(CLI::App& command, RequestFlags& options);
void add_parallel_flags(CLI::App& command, RequestFlags& options);
void add_input_flags(CLI::App& command, InputOptions& options);
void add_resource_flags(CLI::App& command, RunLimits& options);
void add_global_flags(CLI::App& command, GlobalOptions& options);

// The flags that were typed, in the order of --help, without those of the group "Output".
[[nodiscard]] std::vector<GivenFlag> given_flags(const CLI::App& command);

// A script's unset variable must not pass for a flag that was not given, and a flag must not take
// what follows: one value, each time, of all flags and arguments that `command` has by now.
void check_values(CLI::App& command);

// The error for a flag or argument whose value is empty.
[[nodiscard]] Error empty_value(const std::string& name);

}  // namespace mxfp4
