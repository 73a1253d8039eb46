// Where the checkpoints lie that hold the same tensors in every container.
#pragma once

#include <filesystem>

#include "tests/testdata.hpp"

namespace mxfp4::test {

inline const std::filesystem::path kContainers = test::testdata("containers");

}  // namespace mxfp4::test
