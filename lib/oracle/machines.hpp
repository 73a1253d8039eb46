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

namespace mxfp4 {

struct Machine {
  std::string arch;                  // "sm90", "gfx942", "x86_64"
  std::vector<std::string> names{};  // the usual one first; empty: known only by its arch
};

// The names of this one leave features open that rules ask for.
inline constexpr std::string_view kOpenArch = "x86_64";

[[nodiscard]] std::span<const Machine> machines();

// By architecture, compute capability or name: letter case, blanks, words beside the name (its
// maker, its memory) and the features behind an architecture ("sm90a", "gfx942:sramecc+") do not
// matter. Of several names in a text the longest counts. Null when there is no such machine.
[[nodiscard]] const Machine* find_machine(std::string_view text);

// What the rules are asked with. They take kOpenArch for a CPU with AMX, which the name does not say;
// a forced backend is not asked about its machine.
[[nodiscard]] std::string taken_arch(const Machine& machine, bool forced);

// Every architecture and name, for suggestions.
[[nodiscard]] std::vector<std::string> machine_words();

}  // namespace mxfp4
