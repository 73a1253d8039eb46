// Defaults of the person who runs the program every day: variables MXFP4_REPACK_REVISION, _THREADS,
// _MEMORY and _COLOR. A flag wins over them; for the release, the --target file's vLLM does too.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mxfp4 {

// A default and the variable that gives it; an empty value: none.
struct Default {
  std::string value;
  std::string from;
};

struct Defaults {
  Default revision;
  Default threads;  // 1 to 1024
  Default memory;   // a size, as --memory takes it
  Default color;    // auto, always, never

  // The defaults that are set, as explain -v shows them: "threads 8 (MXFP4_REPACK_THREADS)".
  [[nodiscard]] std::vector<std::string> words() const;
};

// Returns the value of an environment variable, or null.
using GetVariable = const char* (*)(const char* name);

// "MXFP4_REPACK_REVISON: no such variable; did you mean MXFP4_REPACK_REVISION?" for each variable
// of the environment whose name is near the name of a default. `environment`: "NAME=VALUE" each, a
// null at the end.
[[nodiscard]] std::vector<std::string> misspelt_variables(const char* const* environment);

// Reads the variables. Throws Error::usage naming one whose value is wrong.
[[nodiscard]] Defaults read_defaults(GetVariable get);

}  // namespace mxfp4
