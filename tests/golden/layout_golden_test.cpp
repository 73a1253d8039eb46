// Runs every layout against bytes that the reference produced: one test a file in
// testdata/golden/<backend>/*.safetensors. Adding a case is adding a file.
//
// Each file holds the loaded tensors (in.*), what the reference made of them (out.*) and, as
// metadata, the target. Forward must give exactly the expected names, types, shapes and bytes, and
// the inverse the loaded tensors. Files with `kind: primitive` hold one building block.
#include <gtest/gtest.h>

#include <algorithm>

#include "lib/core/dtype.hpp"
#include "lib/layouts/block_scale_swizzle.hpp"
#include "lib/layouts/knobs.hpp"
#include "lib/revisions/revisions.hpp"
#include "tests/golden/loaded_layer.hpp"

namespace mxfp4::test {
namespace {

std::vector<std::filesystem::path> golden_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& folder : golden_folders()) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  return files;
}

// One tensor against the reference's.
void expect_tensor(const Tensor& found, const Tensor& expected) {
  EXPECT_EQ(dtype_name(found.spec.dtype), dtype_name(expected.spec.dtype));
  EXPECT_EQ(found.spec.shape.to_string(), expected.spec.shape.to_string());
  ASSERT_EQ(found.bytes.size(), expected.bytes.size());
  EXPECT_EQ(first_difference(found.bytes, expected.bytes), -1);
}

void expect_same(const Tensors& written, const Tensors& expected,
                 const std::vector<Output>& outputs) {
  for (const auto& [name, tensor] : expected) {
    EXPECT_TRUE(written.contains(name)) << name << " is missing";
  }
  for (const Output& output : outputs) {
    SCOPED_TRACE(output.name);
    const auto want = expected.find(output.name);
    if (want == expected.end()) {
      ADD_FAILURE() << "is not expected";
      continue;
    }
    expect_tensor(written.at(output.name), want->second);
  }
}

void check_layout(const GoldenFile& golden) {
  const LoadedLayer layer = layer_from_tensors(with_prefix(golden.tensors, "in."));
  const Target target = target_from_fields(golden.fields);
  const LayoutInput input{layer.spec, layout_parameters(target)};
  const LayoutRow* row = find_layout_row(revision_by_name("vllm-2026-05-18"), target);
  ASSERT_NE(row, nullptr) << "no row for this target";
  ASSERT_NE(row->layout, nullptr) << row->refusal;
  const std::vector<Output> outputs = make_outputs(*row->layout, input);
  const Tensors written = run_layout(*row->layout, input, layer, std::byte{0xA5});
  expect_same(written, with_prefix(golden.tensors, "out."), outputs);
  expect_restored(outputs, layer, written);
}

// R x C or E x R x C bytes, each expert swizzled on its own.
void check_block_scale_swizzle(const GoldenFile& golden) {
  const Tensor& in = golden.tensors.at("in.scale");
  const Shape& shape = in.spec.shape;
  const bool stacked = shape.rank() == 3;
  const int64_t rows = shape[stacked ? 1 : 0];
  const int64_t columns = shape[stacked ? 2 : 1];
  Program program(rows * columns);
  swizzle_128x4(program, rows, columns);

  const auto in_size = static_cast<size_t>(program.in_bytes());
  const auto out_size = static_cast<size_t>(program.out_bytes());
  const size_t experts = in.bytes.size() / in_size;
  std::vector<std::byte> out(experts * out_size, std::byte{0xA5});
  std::vector<std::byte> back(experts * in_size, std::byte{0xA5});
  std::vector<std::byte> scratch(static_cast<size_t>(program.scratch_bytes()), std::byte{0xA5});
  for (size_t e = 0; e < experts; ++e) {
    const MutableBytes part = MutableBytes(out).subspan(e * out_size, out_size);
    program.forward(ConstBytes(in.bytes).subspan(e * in_size, in_size), part, scratch);
    program.inverse(part, MutableBytes(back).subspan(e * in_size, in_size), scratch);
  }
  EXPECT_EQ(first_difference(out, golden.tensors.at("out.scale").bytes), -1);
  EXPECT_EQ(first_difference(back, in.bytes), -1);
}

const std::map<std::string, void (*)(const GoldenFile&)> kPrimitives = {
    {"flashinfer block_scale_interleave", check_block_scale_swizzle},
};

class LayoutGolden : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(LayoutGolden, Matches) {
  const GoldenFile golden = read_golden_file(GetParam());
  const auto kind = golden.fields.find("kind");
  if (kind == golden.fields.end()) {
    check_layout(golden);
    return;
  }
  ASSERT_EQ(kind->second, "primitive");
  kPrimitives.at(golden.fields.at("primitive"))(golden);
}

INSTANTIATE_TEST_SUITE_P(Files, LayoutGolden, testing::ValuesIn(golden_files()),
                         [](const auto& test) {
                           return case_name(test.param) + "_" + std::to_string(test.index);
                         });

}  // namespace
}  // namespace mxfp4::test
