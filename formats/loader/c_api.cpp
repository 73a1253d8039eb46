// mxfp4_repack.h on top of LoadSource.
#include <fmt/format.h>

#include <memory>
#include <span>
#include <string>

#include "formats/loader/blob_loader.hpp"
#include "formats/loader/c_api_arguments.hpp"
#include "formats/loader/c_api_status.hpp"
#include "formats/loader/checkpoint_loader.hpp"
#include "formats/loader/mxfp4_repack.h"
#include "formats/loader/stored_loader.hpp"
#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

// Text that the blob keeps; null where there is none.
const char* c_text(const std::string* text, size_t* size) {
  if (size != nullptr) *size = text == nullptr ? 0 : text->size();
  return text == nullptr ? nullptr : text->c_str();
}

}  // namespace
}  // namespace mxfp4

using mxfp4::BlobLoader;
using mxfp4::ManifestLayer;

const char* mxfp4_repack_version(void) { return MXFP4_REPACK_VERSION; }

int mxfp4_repack_api_version(void) { return MXFP4_REPACK_API_VERSION; }

const char* mxfp4_repack_last_error(void) { return mxfp4::last_error_text(); }

mxfp4_repack_fault mxfp4_repack_last_fault(void) { return mxfp4::last_fault_kind(); }

mxfp4_repack_status mxfp4_repack_open(const char* directory,
                                      const mxfp4_repack_open_options* options,
                                      mxfp4_repack_blob** blob) {
  if (blob != nullptr) *blob = nullptr;
  return mxfp4::guarded([&] {
    mxfp4::require(blob != nullptr, "open: a null pointer");
    mxfp4::require_path(directory, "open: a null pointer");
    mxfp4_repack_open_options known{};
    mxfp4::take(options, known);
    *blob = new mxfp4_repack_blob{
        std::make_unique<BlobLoader>(directory, known.direct != 0, known.lazy != 0)};
  });
}

mxfp4_repack_status mxfp4_repack_open_checkpoint(const char* checkpoint, const char* conversion,
                                                 mxfp4_repack_blob** blob) {
  if (blob != nullptr) *blob = nullptr;
  return mxfp4::guarded([&] {
    mxfp4::require(blob != nullptr && conversion != nullptr, "open_checkpoint: a null pointer");
    mxfp4::require_path(checkpoint, "open_checkpoint: a null pointer");
    *blob = new mxfp4_repack_blob{
        std::make_unique<mxfp4::CheckpointLoader>(mxfp4::plan_load(checkpoint, conversion))};
  });
}

mxfp4_repack_status mxfp4_repack_open_checkpoint_for(const char* checkpoint, const char* deployment,
                                                     mxfp4_repack_blob** blob) {
  if (blob != nullptr) *blob = nullptr;
  return mxfp4::guarded([&] {
    mxfp4::require(blob != nullptr && deployment != nullptr, "open_checkpoint_for: a null pointer");
    mxfp4::require_path(checkpoint, "open_checkpoint_for: a null pointer");
    *blob = new mxfp4_repack_blob{
        std::make_unique<mxfp4::CheckpointLoader>(mxfp4::plan_load_for(checkpoint, deployment))};
  });
}

mxfp4_repack_status mxfp4_repack_same_checkpoint(const char* checkpoint, const char* conversion) {
  return mxfp4::guarded([&] {
    mxfp4::require(conversion != nullptr, "same_checkpoint: a null pointer");
    mxfp4::require_path(checkpoint, "same_checkpoint: a null pointer");
    mxfp4::require_same_checkpoint(checkpoint, conversion);
  });
}

mxfp4_repack_status mxfp4_repack_open_safetensors(const char* file, mxfp4_repack_blob** blob) {
  if (blob != nullptr) *blob = nullptr;
  return mxfp4::guarded([&] {
    mxfp4::require(blob != nullptr, "open_safetensors: a null pointer");
    mxfp4::require_path(file, "open_safetensors: a null pointer");
    *blob = new mxfp4_repack_blob{std::make_unique<mxfp4::StoredLoader>(file)};
  });
}

void mxfp4_repack_close(mxfp4_repack_blob* blob) { delete blob; }

const char* mxfp4_repack_manifest(const mxfp4_repack_blob* blob, size_t* size) {
  const std::string* text = nullptr;
  mxfp4::guarded([&] {
    mxfp4::require(blob != nullptr, "manifest: the blob is null");
    text = &blob->loader.manifest_text();
  });
  return mxfp4::c_text(text, size);
}

int64_t mxfp4_repack_num_layers(const mxfp4_repack_blob* blob) {
  int64_t count = 0;
  mxfp4::guarded([&] {
    mxfp4::require(blob != nullptr, "num_layers: the blob is null");
    count = static_cast<int64_t>(blob->loader.manifest().layers.size());
  });
  return count;
}

mxfp4_repack_status mxfp4_repack_get_layer(const mxfp4_repack_blob* blob, int64_t layer,
                                           mxfp4_repack_layer* answer) {
  return mxfp4::guarded([&] {
    mxfp4::require(blob != nullptr, "get_layer: the blob is null");
    mxfp4::require_size(answer, "get_layer: struct_size is not set");
    const auto& layers = blob->loader.manifest().layers;
    const size_t index = mxfp4::checked_index(layer, layers.size(), "layer");
    const ManifestLayer& found = layers[index];
    int64_t bytes = 0;
    for (const mxfp4::ManifestTensor& tensor : found.tensors) bytes += tensor.spec.bytes();
    const std::string& engine = found.engine_prefix.empty() ? found.prefix : found.engine_prefix;
    mxfp4::give({.struct_size = 0,
                 .index = found.index,
                 .prefix = found.prefix.c_str(),
                 .engine_prefix = engine.c_str(),
                 .num_tensors = static_cast<int64_t>(found.tensors.size()),
                 .num_experts = found.recipe.num_experts(),
                 .bytes = bytes,
                 .direct = blob->loader.is_direct(index) ? 1 : 0,
                 .reserved = 0},
                answer);
  });
}

mxfp4_repack_status mxfp4_repack_get_tensor(const mxfp4_repack_blob* blob, int64_t layer,
                                            int64_t tensor, mxfp4_repack_tensor* answer) {
  return mxfp4::guarded([&] {
    mxfp4::require(blob != nullptr, "get_tensor: the blob is null");
    mxfp4::require_size(answer, "get_tensor: struct_size is not set");
    const auto [in, index, bytes] = mxfp4::checked_tensor(blob->loader, layer, tensor);
    const mxfp4::ManifestLayer& of = blob->loader.manifest().layers[in];
    const mxfp4::ManifestTensor& found = of.tensors[index];
    int64_t offset = 0;  // tensors follow each other without gaps
    for (size_t i = 0; i < index; ++i) offset += of.tensors[i].spec.bytes();
    const std::span<const int64_t> shape = found.spec.shape.dims();
    mxfp4::give({.struct_size = 0,
                 .name = found.name.c_str(),
                 .dtype = mxfp4::dtype_name(found.spec.dtype).data(),
                 .shape = shape.data(),
                 .num_dims = static_cast<int64_t>(shape.size()),
                 .offset = offset,
                 .bytes = bytes,
                 .expert_bytes = mxfp4::expert_bytes(of, found)},
                answer);
  });
}

mxfp4_repack_status mxfp4_repack_read(const mxfp4_repack_blob* blob,
                                      const mxfp4_repack_request* requests, size_t num_requests,
                                      const mxfp4_repack_read_options* options) {
  return mxfp4::guarded([&] {
    mxfp4::require(blob != nullptr, "read: the blob is null");
    const mxfp4::LoadOptions checked_options = mxfp4::options_of(options);
    blob->loader.read(mxfp4::checked_requests(blob->loader, requests, num_requests),
                      checked_options);
  });
}

mxfp4_repack_status mxfp4_repack_check_file(const mxfp4_repack_blob* blob, int64_t layer,
                                            const mxfp4_repack_read_options* options) {
  return mxfp4::guarded([&] {
    mxfp4::require(blob != nullptr, "check_file: the blob is null");
    const mxfp4::LoadOptions checked_options = mxfp4::options_of(options);
    const size_t count = blob->loader.manifest().layers.size();
    blob->loader.check_file(mxfp4::checked_index(layer, count, "layer"), checked_options);
  });
}
