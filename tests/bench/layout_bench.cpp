// Every layout beside memcpy of the same bytes, expert by expert as a layout takes them, both
// directions, in one run. Buffers are far larger than the caches and hold random data;
// scripts/bench turns the result into a table of ratios. Each layout also runs within the caches,
// with ordinary stores: where that is no faster than from memory, memory is not what it waits for.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <random>
#include <set>

#include "lib/exec/buffer.hpp"
#include "lib/layouts/all_layouts.hpp"
#include "lib/layouts/run_output.hpp"
#include "lib/revisions/revisions.hpp"
#include "tests/golden/granules.hpp"
#include "tests/property/target_space.hpp"

namespace mxfp4 {
namespace {

// gpt-oss's: about 200 MB of w13 on either side.
constexpr LayerDims kSizes = {24, 2880, 2880};
// Rows of the same length, but as few as layouts take: 64 for most, 90 KB.
constexpr LayerDims kCachedSizes = {1, 2880, 32};

// One output of one layout, with buffers for all experts.
struct Case {
  LayoutInput input;
  Output output;
  std::vector<Buffer> memory;    // of `in`, then of `out`
  std::vector<MutableBytes> in;  // by slot that the output reads
  MutableBytes out;
};

// Fills `buffer` with `size` random bytes, where the pipeline's own buffers would have them.
MutableBytes random_bytes(Buffer& buffer, int64_t size) {
  const MutableBytes bytes = buffer.get(size + 8);
  std::mt19937_64 draw(static_cast<uint64_t>(size));
  for (int64_t i = 0; i < size; i += 8) {
    const uint64_t word = draw();
    std::memcpy(bytes.data() + i, &word, sizeof word);
  }
  return bytes.first(static_cast<size_t>(size));
}

// The w13 weight output of a row; null when its layout takes no target.
std::shared_ptr<Case> make_case(const RuleSet& rules, const LayoutRow& row,
                                const LayerDims& sizes) {
  const auto input = test::first_input_of(rules, row, sizes);
  if (!input) return nullptr;
  auto made = std::make_shared<Case>();
  made->input = *input;
  made->output = make_outputs(*row.layout, made->input).front();
  return made;
}

void fill(Case& item) {
  if (!item.out.empty()) return;
  const auto slots = slots_read(item.output);
  item.memory = std::vector<Buffer>(slots.size() + 1);
  for (size_t i = 0; i < slots.size(); ++i) {
    item.in.push_back(random_bytes(item.memory[i], item.input.loaded.tensor(slots[i]).bytes()));
  }
  item.out = random_bytes(item.memory.back(), item.output.spec.bytes());
}

void clear(Case& item) {
  item.in = {};
  item.out = {};
  item.memory.clear();
}

SlotBytes granule_of(const Case& item, int64_t granule) {
  SlotBytes whole;
  size_t at = 0;
  for (Slot slot : slots_read(item.output)) whole.set(slot, item.in[at++]);
  return test::granule_of(whole, granule,
                          test::granule_count(item.output, item.input.loaded.dims.num_experts));
}

// Copies in `calls` calls: the C library copies a large block in another way than an
// expert's bytes.
void run_copy(benchmark::State& state, Case& item, int64_t calls) {
  fill(item);
  const MutableBytes in = item.in.front();
  const size_t size = std::min(item.out.size(), in.size()) / static_cast<size_t>(calls);
  for (auto _ : state) {
    for (size_t call = 0; call < static_cast<size_t>(calls); ++call) {
      std::memcpy(item.out.data() + call * size, in.data() + call * size, size);
    }
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * calls * static_cast<int64_t>(size));
  clear(item);
}

void run_layout(benchmark::State& state, Case& item, bool invert) {
  fill(item);
  std::vector<std::byte> scratch(static_cast<size_t>(scratch_bytes(item.output)));
  const int64_t granules = test::granule_count(item.output, item.input.loaded.dims.num_experts);
  const auto out_bytes = static_cast<size_t>(item.output.program.out_bytes());
  const auto in_bytes = static_cast<size_t>(item.output.program.in_bytes());
  for (auto _ : state) {
    for (int64_t g = 0; g < granules; ++g) {
      const MutableBytes out = item.out.subspan(static_cast<size_t>(g) * out_bytes, out_bytes);
      if (invert) {
        run_inverse(item.output, out, {},
                    item.in.front().subspan(static_cast<size_t>(g) * in_bytes, in_bytes), scratch);
      } else {
        run_forward(item.output, granule_of(item, g), out, scratch);
      }
    }
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(item.in.front().size()));
  clear(item);
}

// Adds the layouts of a revision that are not yet in `seen`.
void register_layouts(const RuleSet& rules, std::set<std::string_view>& seen) {
  for (const LayoutRow& row : rules.layouts) {
    if (row.layout == nullptr || seen.contains(id_of(*row.layout))) continue;
    const std::shared_ptr<Case> item = make_case(rules, row, kSizes);
    const std::shared_ptr<Case> cached = make_case(rules, row, kCachedSizes);
    if (!item || !cached) continue;
    seen.insert(id_of(*row.layout));
    const auto add = [&](const char* what, const std::shared_ptr<Case>& taken, auto run) {
      benchmark::RegisterBenchmark(fmt::format("{}|{}", id_of(*row.layout), what).c_str(),
                                   [taken, run](benchmark::State& state) { run(state, *taken); })
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime();
    };
    const auto copy = [](benchmark::State& state, Case& c) {
      run_copy(state, c, c.input.loaded.dims.num_experts);
    };
    const auto copy_all = [](benchmark::State& state, Case& c) { run_copy(state, c, 1); };
    const auto forward = [](benchmark::State& state, Case& c) { run_layout(state, c, false); };
    const auto inverse = [](benchmark::State& state, Case& c) { run_layout(state, c, true); };
    add("memcpy", item, copy);
    add("memcpy of all experts at once", item, copy_all);
    add("forward", item, forward);
    add("forward in the caches", cached, forward);
    if (item->output.lost.empty() && !item->output.combination) {
      add("inverse", item, inverse);
      add("inverse in the caches", cached, inverse);
    }
  }
}

}  // namespace
}  // namespace mxfp4

int main(int argc, char** argv) {
  std::set<std::string_view> seen;
  for (const mxfp4::RuleSet* rules : mxfp4::all_revisions()) mxfp4::register_layouts(*rules, seen);
  for (const mxfp4::Layout* layout : mxfp4::all_layouts()) {
    if (!seen.contains(id_of(*layout))) fmt::print(stderr, "not measured: {}\n", id_of(*layout));
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
