#include "formats/conversion/fingerprint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <vector>

#include "formats/checksum/checksum.hpp"

namespace mxfp4 {
namespace {

constexpr size_t kSamples = 64;
constexpr size_t kSampleBytes = 4096;  // a multiple of every element's size

}  // namespace

std::string fingerprint_of(Source& source) {
  const std::vector<SourceTensor>& tensors = source.tensors();
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t index) { return std::string_view(tensors[index].name); });
  const size_t step = std::max<size_t>(1, (order.size() + kSamples - 1) / kSamples);
  Checksum sum;
  std::array<std::byte, kSampleBytes> sample;
  for (size_t place = 0; place < order.size(); ++place) {
    const SourceTensor& tensor = tensors[order[place]];
    const std::string line = fmt::format("{}\n{}\n", tensor.name, tensor.spec.bytes());
    sum.update(std::as_bytes(std::span(line)));
    if (place % step != 0) continue;
    const auto wanted = std::min<int64_t>(tensor.spec.bytes(), kSampleBytes);
    const MutableBytes bytes = std::span(sample).first(static_cast<size_t>(wanted));
    if (!bytes.empty()) source.read(order[place], 0, bytes);
    sum.update(bytes);
  }
  return sum.hex();
}

}  // namespace mxfp4
