#include "formats/loader/c_api_arguments.hpp"

#include <fmt/format.h>

#include <span>

#include "formats/os/available_threads.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

constexpr int kMostThreads = 1024;

}  // namespace

void require(bool holds, const char* what) {
  if (!holds) throw Error::usage(what);
}

void require_path(const char* path, const char* what) {
  require(path != nullptr, what);
  require(path[0] != '\0', "the path is empty");
}

size_t checked_index(int64_t index, size_t count, std::string_view what) {
  if (index < 0 || static_cast<uint64_t>(index) >= count) {
    throw Error::usage(fmt::format("{} {}: there are {}", what, index, count));
  }
  return static_cast<size_t>(index);
}

int checked_threads(int32_t threads) {
  require(threads >= 0 && threads <= kMostThreads, "options: threads: 0 to 1024");
  return threads == 0 ? available_threads() : threads;
}

LoadOptions options_of(const mxfp4_repack_read_options* given) {
  mxfp4_repack_read_options options{};
  take(given, options);
  return {.threads = checked_threads(options.threads),
          .verify = options.verify != 0,
          .cancel = options.cancel};
}

int64_t expert_bytes(const ManifestLayer& layer, const ManifestTensor& tensor) {
  const int64_t experts = layer.recipe.num_experts();
  const Shape& shape = tensor.spec.shape;
  const bool by_expert = experts > 0 && shape.rank() > 0 && shape[0] == experts;
  return by_expert ? tensor.spec.bytes() / experts : 0;
}

TensorPlace checked_tensor(const LoadSource& loader, int64_t layer, int64_t tensor) {
  const auto& layers = loader.manifest().layers;
  const size_t in = checked_index(layer, layers.size(), "layer");
  const size_t index = checked_index(tensor, layers[in].tensors.size(), "tensor");
  return {in, index, layers[in].tensors[index].spec.bytes()};
}

namespace {

LoadRequest checked_request(const LoadSource& loader, const mxfp4_repack_request& request,
                            RequestMemory memory) {
  const auto& layers = loader.manifest().layers;
  LoadRequest checked;
  checked.layer = checked_index(request.layer, layers.size(), "layer");
  const ManifestLayer& layer = layers[checked.layer];
  checked.tensor = checked_index(request.tensor, layer.tensors.size(), "tensor");
  const ManifestTensor& tensor = layer.tensors[checked.tensor];
  const int64_t all = tensor.spec.bytes();
  if (request.begin < 0 || request.bytes < 0 || request.begin > all ||
      request.bytes > all - request.begin) {
    throw Error::usage(fmt::format("{}: {} bytes from {} on: there are {}", tensor.name,
                                   request.bytes, request.begin, all));
  }
  checked.offset = request.begin;
  require(request.memory != nullptr || request.bytes == 0 || memory == RequestMemory::kLater,
          "memory is null");
  checked.out = {static_cast<std::byte*>(request.memory), static_cast<size_t>(request.bytes)};
  return checked;
}

}  // namespace

std::vector<LoadRequest> checked_requests(const LoadSource& loader,
                                          const mxfp4_repack_request* requests, size_t count,
                                          RequestMemory memory) {
  require(requests != nullptr || count == 0, "requests is null");
  std::vector<LoadRequest> checked;
  for (const mxfp4_repack_request& request : std::span(requests, count)) {
    checked.push_back(checked_request(loader, request, memory));
  }
  return checked;
}

}  // namespace mxfp4
