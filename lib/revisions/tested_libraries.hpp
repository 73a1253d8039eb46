// Versions of kernel libraries by layout: those whose own code was executed and gave the layout's
// bytes (testdata/engines/layouts.json, testdata/golden).
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "lib/layouts/layout.hpp"

namespace mxfp4 {

struct TestedLibrary {
  const Layout* layout = nullptr;
  std::string_view library;                // "flashinfer"
  std::vector<std::string_view> versions;  // oldest first
};

[[nodiscard]] std::span<const TestedLibrary> tested_libraries();

}  // namespace mxfp4
