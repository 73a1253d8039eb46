// What the program carries inside, from scripts/cmake/embedded.cmake.
#pragma once

#include <span>
#include <string_view>

namespace mxfp4 {

struct CompletionScript {
  std::string_view shell;  // "bash"
  std::string_view text;   // the file of scripts/completions
};

[[nodiscard]] std::span<const CompletionScript> completion_scripts();

// The first twelve digits of the commit; empty where the source was not a git checkout.
[[nodiscard]] std::string_view built_from_commit();

}  // namespace mxfp4
