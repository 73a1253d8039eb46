// The bytes before a layer file's data, apart from the writer: the library compares files
// with them.
#include "formats/blob/blob_writer.hpp"
#include "formats/safetensors/safetensors_header.hpp"

namespace mxfp4 {

std::string layer_header(const Manifest& manifest, const ManifestLayer& layer) {
  std::vector<SafetensorsTensor> tensors;
  for (const ManifestTensor& tensor : layer.tensors) {
    append_tensor(tensors, tensor.name, tensor.spec);
  }
  return make_safetensors_header(tensors, layer_metadata(manifest, layer), kSafetensorsAlignment);
}

}  // namespace mxfp4
