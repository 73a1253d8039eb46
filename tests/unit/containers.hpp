// Where the checkpoints lie that hold the same tensors in every container, and a tensor of any.
#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

#include "formats/source/source.hpp"
#include "tests/testdata.hpp"

namespace mxfp4::test {

inline const std::filesystem::path kContainers = test::testdata("containers");

inline std::vector<std::byte> read_all(Source& source, size_t index) {
  std::vector<std::byte> out(static_cast<size_t>(source.tensors()[index].spec.bytes()));
  source.read(index, 0, out);
  return out;
}

}  // namespace mxfp4::test
