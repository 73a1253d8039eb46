// The vector instructions that the kernels use: the best that this machine has; results are
// the same with all.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mxfp4::kernels {

// The sets that this build and this machine both have, best first: "AVX2", "SSE4" ...
[[nodiscard]] std::vector<std::string> instruction_sets();

// The same as Highway's numbers, for tests that force each. What Highway finds for another file
// than the kernels' is not the same: SVE is left out only in theirs (CMakeLists.txt), and kernels
// that are forced to a set which they lack run the baseline's code.
[[nodiscard]] std::vector<int64_t> instruction_set_targets();

// Makes the kernels use this set, or a lesser one. Returns false and changes nothing when the name
// is not among instruction_sets(). To be called before any kernel runs.
[[nodiscard]] bool use_instruction_set(std::string_view name);

}  // namespace mxfp4::kernels
