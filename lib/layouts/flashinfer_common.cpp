#include "lib/layouts/flashinfer_common.hpp"

#include <fmt/format.h>

#include "lib/core/error.hpp"
#include "lib/layouts/slot_outputs.hpp"

namespace mxfp4 {
namespace {

template <class Source>
std::vector<int64_t> row_table(int64_t rows, Source source) {
  std::vector<int64_t> table;
  table.reserve(static_cast<size_t>(rows));
  for (int64_t d = 0; d < rows; ++d) table.push_back(source(d));
  return table;
}

}  // namespace

std::vector<int64_t> trtllm_shuffled_rows(int64_t rows) {
  return row_table(rows, [](int64_t d) { return d / 32 * 32 + d % 8 * 4 + d % 32 / 8; });
}

std::vector<int64_t> up_gate_pairs(Family family, int64_t rows) {
  if (family == Family::kGptOss) return row_table(rows, [](int64_t s) { return s ^ 1; });
  return row_table(rows, [rows](int64_t s) { return s % 2 == 0 ? rows / 2 + s / 2 : s / 2; });
}

std::vector<int64_t> up_half_gate_half(int64_t rows) {
  const int64_t half = rows / 2;
  return row_table(rows, [half](int64_t r) { return r < half ? 2 * r + 1 : 2 * (r - half); });
}

std::vector<int64_t> swapped_halves(int64_t rows) {
  return row_table(rows, [rows](int64_t r) { return (r + rows / 2) % rows; });
}

void require_flashinfer_sizes(std::string_view layout_id, const LayerDims& dims) {
  require_multiple(layout_id, "the hidden size", dims.hidden_size, 128);
  require_multiple(layout_id, "the intermediate size", dims.intermediate_size, 128);
}

void require_biases(std::string_view layout_id, const LoadedSpec& loaded) {
  if (loaded.bias) return;
  throw Error::unsupported(fmt::format("layout {}: the gpt_oss converter needs both biases, found "
                                       "none",
                                       layout_id))
      .reference_type("AssertionError");
}

}  // namespace mxfp4
