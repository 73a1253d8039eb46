// The versions of kernel libraries that revisions ask for, in words.
#pragma once

#include <span>
#include <string>

#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

// "flashinfer 0.6.18, triton_kernels 3.5.1 (CUDA)"
[[nodiscard]] std::string pins_text(std::span<const LibraryPin> pins);

}  // namespace mxfp4
