// A reader of the small safetensors files that hold golden cases. Written apart from formats/ on
// purpose: a fault there cannot hide itself here.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "lib/core/tensor.hpp"

namespace mxfp4::test {

struct Tensor {
  TensorSpec spec;
  std::vector<std::byte> bytes;
  friend bool operator==(const Tensor&, const Tensor&) = default;
};

using Tensors = std::map<std::string, Tensor>;
// The scalar facts of a case by name: backend, family, platform, arch, seed, ...
using Fields = std::map<std::string, std::string>;

struct GoldenFile {
  Tensors tensors;
  Fields fields;
};

// Throws std::runtime_error or nlohmann's exceptions; a test fails on them.
[[nodiscard]] GoldenFile read_golden_file(const std::filesystem::path& path);

// The tensors whose name starts with `prefix`, without it ("in.", "out.").
[[nodiscard]] Tensors with_prefix(const Tensors& tensors, std::string_view prefix);

// The folders <dir>/<backend> of testdata/golden and of $MXFP4_GOLDEN_DIR, where that is set.
[[nodiscard]] std::vector<std::filesystem::path> golden_folders();

// A GoogleTest parameter name from a file: "<backend>_<stem>", other characters as '_'.
[[nodiscard]] std::string case_name(const std::filesystem::path& file);

}  // namespace mxfp4::test
