#include "lib/revisions/knob_conditions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "lib/core/error.hpp"
#include "lib/layouts/knobs.hpp"

namespace mxfp4 {

bool capability_9_0(const Target& target) { return cuda_capability(target.arch) == 90; }

bool capability_from_10(const Target& target) {
  return cuda_capability(target.arch).value_or(0) >= 100;
}

bool capability_12(const Target& target) {
  return cuda_capability(target.arch).value_or(0) / 10 == 12;
}

bool gfx950(const Target& target) { return target.arch.starts_with("gfx950"); }

bool gfx950_in_small_world(const Target& target) {
  return gfx950(target) && target.world_size <= 2;
}

bool no_swizzle(const Target& target) {
  if (target.platform == Platform::kCuda) return cuda_capability(target.arch).has_value();
  return target.platform != Platform::kRocm || !target.arch.empty();
}

bool gfx1250(const Target& target) { return target.arch.starts_with("gfx1250"); }

bool gfx942_or_gfx1250(const Target& target) {
  return target.arch.starts_with("gfx942") || gfx1250(target);
}

bool on_rocm(const Target& target) { return target.platform == Platform::kRocm; }

bool arch_known(const Target& target) { return !target.arch.empty(); }

// CPUs with and without AMX get the same bytes: vLLM builds its packing operators for AVX-512 BF16.
// A release's class says on which CPUs it chooses the backend.
bool no_cpu_kernels(const Target& target) {
  constexpr std::array<std::string_view, 5> kKernels = {"", "x86_64", "x86_64-amx", "x86_64-avx512",
                                                        "amd64"};
  return std::ranges::find(kKernels, target.arch) == kKernels.end();
}

bool situ(const Target& target) { return !target.arch.empty() && target.activation == "situ"; }

bool reads_as_on(std::string_view value) {
  std::string text(value);
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text == "1" || text == "true";
}

bool reads_as_off(std::string_view value) { return !reads_as_on(value); }

}  // namespace mxfp4
