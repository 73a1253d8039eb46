#include "formats/decision/node_reads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "formats/decision/decide.hpp"
#include "lib/core/checked.hpp"

namespace mxfp4 {
namespace {

constexpr int64_t kPageBytes = 4096;
constexpr int64_t kUnknownPlace = kPageBytes / 2 + 8;  // in a file: as that of most, not at a page
// A file, its first page, and the page behind the last one.
using PageRun = std::tuple<std::string_view, int64_t, int64_t>;

// Appends the pages of what a rank takes of an expert, which is `parts` one behind another.
void add_pages(const std::vector<SourceTensor>& tensors, const std::vector<Extent>& parts,
               const Assembly& assembly, std::vector<PageRun>& runs) {
  int64_t before = 0;  // bytes of earlier parts
  for (const Extent& part : parts) {
    const SourceTensor& tensor = tensors[part.tensor];
    const std::string_view file = tensor.file_offset ? tensor.file : tensor.name;
    const int64_t place = tensor.file_offset.value_or(kUnknownPlace) + part.offset;
    for (const CopyRect& rect : assembly.rects) {
      const int64_t step = assembly.stored.row_bytes * rect.step;
      // No page lies between rows that are less than a page apart.
      const int64_t rows = step - rect.col_bytes < kPageBytes ? rect.rows : 1;
      int64_t at = rect.from_row * assembly.stored.row_bytes + rect.from_col - before;
      for (int64_t row = 0; row < rect.rows; row += rows, at += step) {
        const int64_t begin = std::max<int64_t>(at, 0);
        const int64_t end = std::min(at + (rows - 1) * step + rect.col_bytes, part.bytes);
        if (begin >= end) continue;
        runs.emplace_back(file, (place + begin) / kPageBytes, (place + end - 1) / kPageBytes + 1);
      }
    }
    before += part.bytes;
  }
}

int64_t bytes_of(std::vector<PageRun>& runs) {
  std::ranges::sort(runs);
  int64_t pages = 0;
  PageRun last;
  for (auto [file, begin, end] : runs) {
    if (file == std::get<0>(last)) begin = std::max(begin, std::get<2>(last));
    pages += std::max<int64_t>(end - begin, 0);
    last = {file, begin, std::max(begin, end)};
  }
  return pages * kPageBytes;
}

}  // namespace

std::vector<NodeReads> node_reads(const OpenedCheckpoint& checkpoint, const Conversion& conversion,
                                  int64_t nodes, int64_t stated) {
  const auto& [model, tensors] = std::tie(checkpoint.model, checkpoint.source->tensors());
  const Plan plan = make_plan(model, conversion.ranks, plan_options(conversion));
  const auto share = std::ssize(plan.ranks) / nodes;
  if (share * nodes != std::ssize(plan.ranks)) {
    throw Error::usage(fmt::format("{} nodes for {} ranks", nodes, plan.ranks.size()))
        .at_key("--nodes");
  }
  int64_t whole = 0;
  for (const SourceTensor& tensor : tensors) whole = checked_add(whole, tensor.spec.bytes());
  int64_t others = std::max<int64_t>(stated - whole, 0);
  for (const size_t tensor : model.rest) others += tensors[tensor].spec.bytes();
  whole = std::max(whole, stated);
  std::vector<NodeReads> ways = {{"whole checkpoint"}, {"slices in place"}, {"blob"}};
  for (int64_t node = 0; node < nodes; ++node) {
    std::vector<PageRun> runs;
    int64_t blob = others;
    for (const PlannedFile& file : plan.files) {
      if (static_cast<int64_t>(file.rank) / share != node) continue;
      blob += file.data_bytes;
      const ExpertLayer& layer = model.layers[file.layer];
      const auto& experts = plan.ranks[file.rank].experts_of(layer.dims.num_experts);
      for (size_t slot = 0; slot < layer.slots.size(); ++slot) {
        if (!file.assemblies[slot] || layer.slots[slot].experts.empty()) continue;
        for (const int64_t expert : experts) {
          add_pages(tensors, layer.slots[slot].experts[static_cast<size_t>(expert)],
                    *file.assemblies[slot], runs);
        }
      }
    }
    const std::array bytes = {whole, std::min(whole, others + bytes_of(runs)), blob};
    for (size_t way = 0; way < ways.size(); ++way) {
      ways[way].node = std::max(ways[way].node, bytes[way]);
      ways[way].all = checked_add(ways[way].all, bytes[way]);
    }
  }
  return ways;
}

}  // namespace mxfp4
