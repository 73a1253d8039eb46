// One function a command. Each returns the exit code of a result (0, 1 or 7) and throws Error for
// everything else.
#pragma once

#include <string>
#include <vector>

#include "apps/console.hpp"
#include "apps/options.hpp"

namespace mxfp4 {

// Exit codes are a contract: man mxfp4-repack, EXIT STATUS. exit_code_of() maps each ErrorKind to
// one.
enum ExitCode : int {
  kOk = 0,
  kDifference = 1,
  kUsage = 2,
  kInput = 3,
  kUnsupported = 4,
  kOutput = 5,
  kInternal = 6,
  kNotKnown = 7,  // of fits and inspect --revision
};

[[nodiscard]] int run_convert(const ConvertOptions& options, const Console& console);
[[nodiscard]] int run_inspect(const InspectOptions& options, const Console& console);
[[nodiscard]] int run_explain(const ExplainOptions& options, const Console& console);
[[nodiscard]] int run_verify(const VerifyOptions& options, const Console& console);
[[nodiscard]] int run_fits(const FitsOptions& options, const Console& console);
[[nodiscard]] int run_diff(const DiffOptions& options, const Console& console);
[[nodiscard]] int run_unpack(const UnpackOptions& options, const Console& console);
[[nodiscard]] int run_finalize(const FinalizeOptions& options, const Console& console);
// The tables that `list` shows.
[[nodiscard]] std::vector<std::string> list_tables();
[[nodiscard]] int run_list(const ListOptions& options, const Console& console);

}  // namespace mxfp4
