// What a CPU's model number says of the features that rules ask for.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace mxfp4 {

// The architecture of find_machine for a server CPU that `words`, in lower case, name by family,
// and by model number or generation: {"epyc", "9654"} is x86_64-avx512, {"xeon", "4th", "gen"} is
// x86_64-amx. Without a number that is known: "x86_64", whose features are open. Empty for others.
//
// AMX: Intel's Xeon from Sapphire Rapids on (4th and 5th generation, and of Xeon 6 those with
// performance cores), no CPU of AMD. AVX-512 with BF16: EPYC from Zen 4 on. The makers' lists of
// products say both.
[[nodiscard]] std::string_view arch_of_cpu(std::span<const std::string> words);

}  // namespace mxfp4
