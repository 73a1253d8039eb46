// Names for files of a test that no other process uses: two builds may be tested at once.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace mxfp4::test {

inline std::filesystem::path scratch_path(const std::string& name) {
  return std::filesystem::path(testing::TempDir()) / (name + "." + std::to_string(::getpid()));
}

}  // namespace mxfp4::test
