#include "tests/testdata.hpp"

namespace mxfp4::test {

std::filesystem::path testdata(std::string_view name) {
  return std::filesystem::path(MXFP4_TESTDATA) / name;
}

}  // namespace mxfp4::test
