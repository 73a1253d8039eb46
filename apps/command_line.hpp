// Declares the flags of every command, which fill the plain values of options.hpp.
#pragma once

#include <functional>
#include <string>

#include "apps/console.hpp"
#include "apps/options.hpp"

namespace CLI {
class App;
}

namespace mxfp4 {

// All options that any command fills, and the command that was chosen.
struct CommandLine {
  GlobalOptions global;
  ConvertOptions convert;
  InspectOptions inspect;
  VerifyOptions verify;
  FitsOptions fits;
  DiffOptions diff;
  UnpackOptions unpack;
  FinalizeOptions finalize;
  ExplainOptions explain;
  ListOptions list;
  std::string shell;     // of completion
  bool version = false;  // no command: --version
  std::function<int(const Console&)> run;
};

// Declares commands and flags; parsing sets `line.run`. `line` outlives `app`.
void declare_commands(CLI::App& app, CommandLine& line);

}  // namespace mxfp4
