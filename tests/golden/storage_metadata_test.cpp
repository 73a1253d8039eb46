// What a layout says about the engine's object (class, shapes, strides) against what the
// reference's objects said: the `storage` metadata of the golden files.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "lib/core/dtype.hpp"
#include "lib/layouts/knobs.hpp"
#include "lib/layouts/output.hpp"
#include "lib/revisions/revisions.hpp"
#include "tests/testdata.hpp"

namespace mxfp4 {
namespace {

using Json = nlohmann::ordered_json;

Json read_header(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  uint64_t size = 0;
  file.read(reinterpret_cast<char*>(&size), sizeof(size));
  std::string text(size, ' ');
  file.read(text.data(), static_cast<std::streamsize>(size));
  return Json::parse(text);
}

LayoutInput input_of(const Json& header, const Target& target) {
  const Json& w13 = header["in.w13_weight"]["shape"];
  LayoutInput input;
  input.loaded.dims = {w13[0].get<int64_t>(), w13[2].get<int64_t>() * 2, w13[1].get<int64_t>() / 2};
  if (header.contains("in.w13_bias")) input.loaded.bias = DType::kBF16;
  input.loaded.input_scales = header.contains("in.w13_input_scale");
  input.parameters = layout_parameters(target);
  return input;
}

Target target_of(const Json& fields) {
  Target target;
  target.backend = backend_from_name(fields["backend"].get<std::string>()).value();
  target.family = family_from_name(fields["family"].get<std::string>()).value();
  target.platform = platform_from_name(fields["platform"].get<std::string>()).value();
  target.arch = fields["arch"].get<std::string>();
  return target;
}

Json storage_json(const Storage& storage) {
  Json kwargs = Json::object();
  for (const auto& [name, value] : storage.layout_kwargs) kwargs[name] = value;
  return {{"layout", storage.layout},
          {"layout_name", storage.layout_name},
          {"layout_kwargs", kwargs},
          {"layout_init_shape", storage.layout_init_shape},
          {"storage_shape", storage.storage_shape},
          {"storage_strides", storage.storage_strides},
          {"logical_shape", storage.logical_shape},
          {"logical_dtype", storage.logical_dtype}};
}

int check_file(const std::filesystem::path& path) {
  SCOPED_TRACE(path.string());
  const Json header = read_header(path);
  const Json& fields = header["__metadata__"];
  if (!fields.contains("storage")) return 0;
  const Target target = target_of(fields);
  const LayoutInput input = input_of(header, target);
  const LayoutRow* row = find_layout_row(revision_by_name("vllm-2026-05-18"), target);
  if (row == nullptr || row->layout == nullptr) {
    ADD_FAILURE() << "no layout";
    return 0;
  }
  Json written = Json::object();
  for (const Output& output : make_outputs(*row->layout, input)) {
    if (!output.storage.layout.empty()) written[output.name] = storage_json(output.storage);
  }
  EXPECT_EQ(written, Json::parse(fields["storage"].get<std::string>()));
  return 1;
}

TEST(StorageMetadata, EqualsTheReferenceObjects) {
  int checked = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(test::testdata("golden"))) {
    if (entry.path().extension() == ".safetensors") checked += check_file(entry.path());
  }
  EXPECT_GE(checked, 10);
}

}  // namespace
}  // namespace mxfp4
