#include "formats/loader/gpu/gpu_in_place.hpp"

#include <fmt/format.h>

#include "lib/core/error.hpp"

namespace mxfp4 {

void GpuInPlace::read(const LoadSource& source, std::span<const LoadRequest> requests,
                      const LoadOptions& options) const {
  for (const LoadRequest& request : requests) {
    if (request.out.empty() || gpu_.is_shared(request.out.data())) continue;
    throw Error::usage(fmt::format("{}: in_place: memory is not shared by CPUs and GPU",
                                   source.place(request.layer, request.tensor)));
  }
  LoadOptions own = options;
  own.threads = threads_;
  source.read(requests, own);
}

}  // namespace mxfp4
