#include "lib/plan/padding.hpp"

#include <algorithm>

#include "lib/layouts/run_output.hpp"

namespace mxfp4 {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(int64_t size, std::byte value = {}) {
  return Bytes(static_cast<size_t>(size), value);
}

bool pads(const Output& output, const Assembly& assembly) {
  int64_t copied = 0;
  for (const CopyRect& rect : assembly.rects) copied += rect.rows * rect.col_bytes;
  return copied < assembly.loaded.bytes() || output.program.out_bytes() > output.program.in_bytes();
}

// One granule of the output, made of an expert whose codes have all bits set.
Bytes output_of_ones(const Output& output, const Assembly& assembly) {
  Bytes loaded = bytes_of(assembly.loaded.bytes());
  assembly.forward(bytes_of(assembly.stored.bytes(), std::byte{0xFF}), loaded);
  SlotBytes granule;
  granule.set(output.slot, loaded);
  Bytes out = bytes_of(output.program.out_bytes());
  Bytes scratch = bytes_of(scratch_bytes(output, Direction::kForward));
  run_forward(output, granule, out, scratch);
  return out;
}

}  // namespace

std::vector<PaddingRun> find_padding(const Output& output, const Assembly& assembly) {
  if (output.combination || output.experts_per_granule != 1 || !pads(output, assembly)) {
    return {};
  }
  const Bytes out = output_of_ones(output, assembly);
  const auto is_padding = [](std::byte b) { return b == std::byte{0}; };
  std::vector<PaddingRun> runs;
  for (auto at = out.begin(); at != out.end();) {
    const auto begin = std::find_if(at, out.end(), is_padding);
    at = std::find_if_not(begin, out.end(), is_padding);
    if (at - begin >= kLeastPadding) runs.push_back({begin - out.begin(), at - begin});
  }
  return runs;
}

std::vector<PaddingRun> padding_between(std::span<const PaddingRun> granule, int64_t granule_bytes,
                                        int64_t begin, int64_t end) {
  std::vector<PaddingRun> runs;
  if (granule.empty()) return runs;
  for (int64_t start = begin / granule_bytes * granule_bytes; start < end; start += granule_bytes) {
    const auto ended = [&](const PaddingRun& run) {
      return start + run.begin + run.bytes <= begin;
    };
    auto run = std::ranges::partition_point(granule, ended);
    for (; run != granule.end() && start + run->begin < end; ++run) {
      const int64_t first = std::max(start + run->begin, begin);
      const int64_t last = std::min(start + run->begin + run->bytes, end);
      runs.push_back({first - begin, last - first});
    }
  }
  return runs;
}

}  // namespace mxfp4
