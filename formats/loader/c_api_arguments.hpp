// Arguments of mxfp4_repack.h, checked. Every function here throws Error::usage for what
// contradicts the blob or the header.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "formats/loader/load_source.hpp"
#include "formats/loader/mxfp4_repack.h"

struct mxfp4_repack_blob {
  std::unique_ptr<mxfp4::LoadSource> source;
  const mxfp4::LoadSource& loader = *source;
};

namespace mxfp4 {

void require(bool holds, const char* what);
// An empty path would be the current directory, and mostly is a variable without a value.
void require_path(const char* path, const char* what);

// `index`, checked to be below `count`.
[[nodiscard]] size_t checked_index(int64_t index, size_t count, std::string_view what);

template <class Struct>
void require_size(const Struct* value, const char* what) {
  require(value != nullptr && value->struct_size >= sizeof(value->struct_size), what);
}

// Copies the members of `answer` that the caller's version of the structure has.
template <class Answer>
void give(Answer answer, Answer* to) {
  const size_t size = std::min(to->struct_size, sizeof(Answer));
  answer.struct_size = to->struct_size;
  std::memcpy(to, &answer, size);
}

// Copies the members of `given`, which may be null, that the caller's version of the structure has.
template <class Options>
void take(const Options* given, Options& options) {
  if (given == nullptr) return;
  require_size(given, "options: struct_size is not set");
  std::memcpy(&options, given, std::min(given->struct_size, sizeof(options)));
}

// 0 becomes the number of CPUs that this process may use.
[[nodiscard]] int checked_threads(int32_t threads);
[[nodiscard]] LoadOptions options_of(const mxfp4_repack_read_options* given);

// Bytes of one expert, where the tensor's first dimension counts experts; else 0.
[[nodiscard]] int64_t expert_bytes(const ManifestLayer& layer, const ManifestTensor& tensor);

// A tensor that the caller named by numbers, checked to be in the blob.
struct TensorPlace {
  size_t layer;
  size_t tensor;
  int64_t bytes;
};
[[nodiscard]] TensorPlace checked_tensor(const LoadSource& loader, int64_t layer, int64_t tensor);

// Whether a request's memory must be there, or is not looked at.
enum class RequestMemory : uint8_t { kNow, kLater };
[[nodiscard]] std::vector<LoadRequest> checked_requests(const LoadSource& loader,
                                                        const mxfp4_repack_request* requests,
                                                        size_t count,
                                                        RequestMemory memory = RequestMemory::kNow);

}  // namespace mxfp4
