// libFuzzer target: any text as model.safetensors.index.json, of a checkpoint and of a blob. A
// checkpoint's files lie beside it; a blob has the one index that follows from its manifest.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "formats/blob/blob_files.hpp"
#include "formats/blob/manifest.hpp"
#include "formats/checkpoint/safetensors_source.hpp"
#include "formats/safetensors/weight_map.hpp"
#include "lib/core/dtype.hpp"
#include "tests/fuzz/fuzz_input.hpp"

namespace {

namespace fs = std::filesystem;
using mxfp4::fuzz::Folder;

// A file of one tensor of four bytes.
std::string safetensors(std::string_view tensor) {
  const std::string header =
      fmt::format(R"({{"{}":{{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}}})", tensor);
  return std::string{static_cast<char>(header.size()), 0, 0, 0, 0, 0, 0, 0} + header + "data";
}

void read_checkpoint(const Folder& folder) {
  mxfp4::fuzz::only_input_errors([&] {
    const std::unique_ptr<mxfp4::Source> source = mxfp4::open_safetensors(folder.path());
    for (size_t i = 0; i < source->tensors().size(); ++i) {
      const mxfp4::SourceTensor& tensor = source->tensors()[i];
      if (fs::path(tensor.file).parent_path() != folder.path()) std::abort();
      std::string out(static_cast<size_t>(tensor.spec.bytes()), '\0');
      source->read(i, 0, std::as_writable_bytes(std::span(out)));
      if (out != "data") std::abort();
    }
  });
}

// A blob of one layer, whose tensors may be in any order.
mxfp4::Manifest blob_of(std::string_view text) {
  mxfp4::Manifest manifest;
  mxfp4::ManifestLayer& layer = manifest.layers.emplace_back();
  layer.file = "layer-00000.safetensors";
  for (const std::string_view name : {"w2", "w13", "w13_scale"}) {
    layer.tensors.push_back(
        {fmt::format("layers.0.{}", name), {mxfp4::DType::kU8, mxfp4::Shape{4}}, {}, {}});
  }
  // One tensor's name comes from the input, as far as JSON needs no escape.
  std::string drawn;
  for (const char letter : text.substr(0, 8)) drawn += static_cast<char>('a' + (letter & 15));
  layer.tensors.push_back({"layers.0." + drawn, {mxfp4::DType::kU8, mxfp4::Shape{4}}, {}, {}});
  return manifest;
}

void check_blob(const Folder& folder, const std::string& text) {
  mxfp4::fuzz::only_input_errors([&] { (void)mxfp4::parse_weight_map(text); });
  const mxfp4::Manifest manifest = blob_of(text);
  const std::string right = mxfp4::write_index(manifest);
  const bool differs = mxfp4::check_blob_files(folder.path(), manifest).empty() != (text == right);
  if (differs) std::abort();
  folder.put(mxfp4::kIndexName, right);
  if (!mxfp4::check_blob_files(folder.path(), manifest).empty()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(mxfp4::fuzz::text_of(data, size));
  const Folder checkpoint;
  checkpoint.put("a.safetensors", safetensors("a"));
  checkpoint.put("b.safetensors", safetensors("b"));
  for (const char* name : {"model.safetensors.index.json", "consolidated.safetensors.index.json"}) {
    checkpoint.put(name, text);
    read_checkpoint(checkpoint);
    checkpoint.put("consolidated.safetensors",
                   safetensors("c"));  // from now on the second index counts
  }
  const Folder blob;
  blob.put("layer-00000.safetensors", "");
  blob.put(mxfp4::kIndexName, text);
  check_blob(blob, text);
  return 0;
}
