// What --help prints: usage, examples first, then the flags in groups, at most 80 columns wide.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace mxfp4 {

// The help of the program or of one command, by what is declared in `app`; its footer holds the
// examples, one command a line.
[[nodiscard]] std::string help_text(const CLI::App& app);

}  // namespace mxfp4
