// mxfp4_repack.h on top of LoadSource.
#include <fmt/format.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/checksum/checksum.hpp"
#include "formats/loader/blob_loader.hpp"
#include "formats/loader/c_api_arguments.hpp"
#include "formats/loader/c_api_status.hpp"
#include "formats/loader/checkpoint_loader.hpp"
#include "formats/loader/layer_stream.hpp"
#include "formats/loader/mxfp4_repack.h"
#include "formats/loader/stored_loader.hpp"
#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"

struct mxfp4_repack_stream {
  mxfp4::LayerStream stream;
};

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

mxfp4_repack_status mxfp4_repack_checksum(const void* data, int64_t bytes, char* text) {
  return mxfp4::guarded([&] {
    mxfp4::require(text != nullptr && (data != nullptr || bytes == 0), "checksum: a null pointer");
    mxfp4::require(bytes >= 0, "checksum: bytes is negative");
    const std::string sum =
        mxfp4::checksum_of({static_cast<const char*>(data), static_cast<size_t>(bytes)});
    std::memcpy(text, sum.c_str(), sum.size() + 1);
  });
}

mxfp4_repack_status mxfp4_repack_open(const char* directory, mxfp4_repack_blob** blob) {
  return mxfp4_repack_open_with(directory, nullptr, blob);
}

mxfp4_repack_status mxfp4_repack_open_with(const char* directory,
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
    *blob =
        new mxfp4_repack_blob{std::make_unique<mxfp4::CheckpointLoader>(checkpoint, conversion)};
  });
}

mxfp4_repack_status mxfp4_repack_open_checkpoint_for(const char* checkpoint, const char* deployment,
                                                     mxfp4_repack_blob** blob) {
  if (blob != nullptr) *blob = nullptr;
  return mxfp4::guarded([&] {
    mxfp4::require(blob != nullptr && deployment != nullptr, "open_checkpoint_for: a null pointer");
    mxfp4::require_path(checkpoint, "open_checkpoint_for: a null pointer");
    *blob = new mxfp4_repack_blob{std::make_unique<mxfp4::CheckpointLoader>(
        checkpoint, mxfp4::parse_checkpoint_request(deployment))};
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

const char* mxfp4_repack_header(const mxfp4_repack_blob* blob, int64_t layer, size_t* size) {
  const std::string* text = nullptr;
  mxfp4::guarded([&] {
    mxfp4::require(blob != nullptr, "header: the blob is null");
    const size_t count = blob->loader.manifest().layers.size();
    text = &blob->loader.header_text(mxfp4::checked_index(layer, count, "layer"));
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
    const std::string& engine = found.engine_prefix.empty() ? found.prefix : found.engine_prefix;
    mxfp4::give({.struct_size = 0,
                 .index = found.index,
                 .prefix = found.prefix.c_str(),
                 .engine_prefix = engine.c_str(),
                 .num_tensors = static_cast<int64_t>(found.tensors.size()),
                 .num_experts = found.recipe.num_experts(),
                 .bytes = blob->loader.data_bytes(index),
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
    const std::span<const int64_t> shape = found.spec.shape.dims();
    mxfp4::give({.struct_size = 0,
                 .name = found.name.c_str(),
                 .dtype = mxfp4::dtype_name(found.spec.dtype).data(),
                 .shape = shape.data(),
                 .num_dims = static_cast<int64_t>(shape.size()),
                 .offset = blob->loader.tensor_offset(in, index),
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

mxfp4_repack_status mxfp4_repack_read_layer(const mxfp4_repack_blob* blob, int64_t layer,
                                            void* memory, int64_t bytes,
                                            const mxfp4_repack_read_options* options) {
  return mxfp4::guarded([&] {
    mxfp4::require(blob != nullptr, "read_layer: the blob is null");
    const mxfp4::LoadOptions checked_options = mxfp4::options_of(options);
    const mxfp4::LoadSource& loader = blob->loader;
    const auto& layers = loader.manifest().layers;
    const size_t index = mxfp4::checked_index(layer, layers.size(), "layer");
    const int64_t expected = loader.data_bytes(index);
    if (bytes != expected) {
      throw mxfp4::Error::usage(
          fmt::format("layer {}: {} bytes of memory for {}", layer, bytes, expected));
    }
    mxfp4::require(memory != nullptr || bytes == 0, "memory is null");
    const mxfp4::MutableBytes all(static_cast<std::byte*>(memory), static_cast<size_t>(bytes));
    std::vector<mxfp4::LoadRequest> requests;
    for (size_t tensor = 0; tensor < layers[index].tensors.size(); ++tensor) {
      const auto size = static_cast<size_t>(layers[index].tensors[tensor].spec.bytes());
      const auto offset = static_cast<size_t>(loader.tensor_offset(index, tensor));
      requests.push_back(
          {.layer = index, .tensor = tensor, .offset = 0, .out = all.subspan(offset, size)});
    }
    loader.read(requests, checked_options);
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

mxfp4_repack_status mxfp4_repack_read_part(const mxfp4_repack_blob* blob, int64_t layer,
                                           int64_t tensor, int64_t begin, void* memory,
                                           int64_t bytes,
                                           const mxfp4_repack_read_options* options) {
  return mxfp4::guarded([&] {
    mxfp4::require(blob != nullptr, "read_part: the blob is null");
    const mxfp4::LoadOptions checked_options = mxfp4::options_of(options);
    const mxfp4::TensorPlace place = mxfp4::checked_tensor(blob->loader, layer, tensor);
    if (begin < 0 || bytes < 0 || begin > place.bytes || bytes > place.bytes - begin) {
      throw mxfp4::Error::usage(
          fmt::format("read_part: {} bytes from {} on: there are {}", bytes, begin, place.bytes));
    }
    mxfp4::require(memory != nullptr || bytes == 0, "memory is null");
    const mxfp4::LoadRequest request{
        .layer = place.layer,
        .tensor = place.tensor,
        .offset = begin,
        .out = {static_cast<std::byte*>(memory), static_cast<size_t>(bytes)}};
    blob->loader.read({&request, 1}, checked_options);
  });
}

mxfp4_repack_status mxfp4_repack_stream_open(const mxfp4_repack_blob* blob, int64_t layer,
                                             const int64_t* tensors, size_t num_tensors, void* ring,
                                             int64_t ring_bytes, int64_t run_bytes,
                                             const mxfp4_repack_read_options* options,
                                             mxfp4_repack_stream** stream) {
  if (stream != nullptr) *stream = nullptr;
  return mxfp4::guarded([&] {
    mxfp4::require(blob != nullptr && stream != nullptr && ring != nullptr,
                   "stream_open: a null pointer");
    mxfp4::require(tensors != nullptr || num_tensors == 0, "stream_open: tensors is null");
    mxfp4::require(ring_bytes >= 0, "stream_open: ring_bytes is negative");
    const mxfp4::LoadOptions checked_options = mxfp4::options_of(options);
    const size_t in = mxfp4::checked_index(layer, blob->loader.manifest().layers.size(), "layer");
    std::vector<size_t> checked;
    for (const int64_t tensor : std::span(tensors, num_tensors)) {
      checked.push_back(mxfp4::checked_tensor(blob->loader, layer, tensor).tensor);
    }
    const mxfp4::MutableBytes memory(static_cast<std::byte*>(ring),
                                     static_cast<size_t>(ring_bytes));
    *stream = new mxfp4_repack_stream{
        mxfp4::LayerStream(blob->loader, in, checked, memory, run_bytes, checked_options)};
  });
}

mxfp4_repack_status mxfp4_repack_stream_next(mxfp4_repack_stream* stream, mxfp4_repack_run* run) {
  return mxfp4::guarded([&] {
    mxfp4::require(stream != nullptr, "stream_next: the stream is null");
    mxfp4::require_size(run, "stream_next: struct_size is not set");
    mxfp4_repack_run answer{};
    if (const auto found = stream->stream.next()) {
      answer.tensor = static_cast<int64_t>(found->tensor);
      answer.begin = found->begin;
      answer.bytes = static_cast<int64_t>(found->bytes.size());
      answer.memory = found->bytes.data();
    }
    mxfp4::give(answer, run);
  });
}

mxfp4_repack_status mxfp4_repack_stream_give_back(mxfp4_repack_stream* stream) {
  return mxfp4::guarded([&] {
    mxfp4::require(stream != nullptr, "stream_give_back: the stream is null");
    stream->stream.give_back();
  });
}

void mxfp4_repack_stream_close(mxfp4_repack_stream* stream) { delete stream; }
