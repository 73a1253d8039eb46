// Where testdata/ is. Only testdata.cpp is compiled with the path, so that a compiler cache serves
// the other tests in every checkout.
#pragma once

#include <filesystem>
#include <string_view>

namespace mxfp4::test {

// The path of a file or folder of testdata/, named relative to it: "golden/marlin".
[[nodiscard]] std::filesystem::path testdata(std::string_view name);

}  // namespace mxfp4::test
