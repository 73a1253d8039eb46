// The text of --help: usage, examples, then the flags in groups; as wide as the terminal, at most
// 100 columns.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace mxfp4 {

// The help of the program or of one command, from the flags that `app` declares: the usual ones, or all. The
// footer of `app` holds the examples, one command a line.
[[nodiscard]] std::string help_text(const CLI::App& app, bool all);

}  // namespace mxfp4
