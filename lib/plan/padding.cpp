#include "lib/plan/padding.hpp"

#include <algorithm>
#include <cstring>

#include "lib/core/tensor.hpp"
#include "lib/exec/buffer.hpp"
#include "lib/layouts/run_output.hpp"

namespace mxfp4 {
namespace {

bool pads(const Output& output, const Assembly& assembly) {
  int64_t copied = 0;
  for (const CopyRect& rect : assembly.rects) copied += rect.rows * rect.col_bytes;
  return copied < assembly.loaded.bytes() || output.program.out_bytes() > output.program.in_bytes();
}

// Memory for find_padding(). Fresh pages cost more than the work on them, so the memory is taken in
// large pages, and the granule reuses the memory of the weights.
struct Memory {
  Buffer weights_and_granule;
  Buffer loaded;
  Buffer scratch;
};

// One granule of the output, made of an expert whose codes have all bits set.
ConstBytes output_of_ones(const Output& output, const Assembly& assembly, Memory& memory) {
  const int64_t stored_bytes = assembly.stored.bytes();
  const int64_t out_bytes = output.program.out_bytes();
  const MutableBytes shared = memory.weights_and_granule.get(std::max(stored_bytes, out_bytes));
  const MutableBytes stored = shared.first(static_cast<size_t>(stored_bytes));
  std::ranges::fill(stored, std::byte{0xFF});
  const MutableBytes loaded = memory.loaded.get(assembly.loaded.bytes());
  assembly.forward(stored, loaded);
  SlotBytes granule;
  granule.set(output.slot, loaded);
  const MutableBytes out = shared.first(static_cast<size_t>(out_bytes));
  run_forward(output, granule, out, memory.scratch.get(scratch_bytes(output, Direction::kForward)));
  return out;
}

}  // namespace

std::vector<PaddingRun> find_padding(const Output& output, const Assembly& assembly) {
  if (output.combination || output.experts_per_granule != 1 || !pads(output, assembly)) {
    return {};
  }
  Memory memory;
  const ConstBytes out = output_of_ones(output, assembly, memory);
  const auto next_padding = [&](size_t from) {
    const void* found = std::memchr(out.data() + from, 0, out.size() - from);
    return found == nullptr
               ? out.size()
               : static_cast<size_t>(static_cast<const std::byte*>(found) - out.data());
  };
  const auto end_of_padding = [&](size_t from) {
    const auto rest = out.subspan(from);
    return from + static_cast<size_t>(
                      std::ranges::find_if(rest, [](std::byte b) { return b != std::byte{0}; }) -
                      rest.begin());
  };
  std::vector<PaddingRun> runs;
  for (size_t at = next_padding(0); at < out.size(); at = next_padding(at)) {
    const auto begin = static_cast<int64_t>(at);
    at = end_of_padding(at);
    const auto bytes = static_cast<int64_t>(at) - begin;
    if (bytes >= kLeastPadding) runs.push_back({begin, bytes});
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
