// Where the checkpoints lie that hold the same tensors in every container.
#pragma once

#include <filesystem>

namespace mxfp4::test {

inline const std::filesystem::path kContainers =
    std::filesystem::path(MXFP4_TESTDATA) / "containers";

}  // namespace mxfp4::test
