// The machines that people name, and the architecture that the rules know each by. One table; the
// makers gave the names; the architectures are CUDA's compute capabilities and LLVM's list of AMD
// GPUs.
//
// Usage: find_machine("NVIDIA H100 80GB HBM3")->arch is "sm90". "hopper", "9.0", "sm_90a" and
// "SM90" find the same.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/core/backend.hpp"

namespace mxfp4 {

struct Machine {
  std::string_view arch;  // "sm90", "gfx942", "x86_64"
  Platform platform;
  std::vector<std::string_view> names{};  // the usual one first; empty: known only by its arch
  // Where arch and names leave features open that rules ask for: the architecture with none
  // of them.
  std::string_view least{};
  std::string_view more{};  // in words: what to type for one that has them
};

[[nodiscard]] std::span<const Machine> machines();

// By architecture, compute capability or name: letter case, blanks, words beside the name (its
// maker, its memory) and the features behind an architecture ("sm90a", "gfx942:sramecc+") do not
// matter. Null when there is no such machine, and for a text that names two.
[[nodiscard]] const Machine* find_machine(std::string_view text);

// Every architecture and name, for suggestions.
[[nodiscard]] std::vector<std::string> machine_words();

}  // namespace mxfp4
