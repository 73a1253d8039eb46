#include "lib/steps/step.hpp"

#include <algorithm>
#include <cstring>

#include "lib/core/overloaded.hpp"
#include "lib/kernels/permute.hpp"

namespace mxfp4 {
namespace {

int64_t permute_bytes_of(const Permute& step) {
  int64_t units = 1;
  for (int64_t dim : step.dims) units *= dim;
  return units * unit_bits(step.unit) / 8;
}

void run_permute(const Permute& step, bool invert, ConstBytes in, MutableBytes out) {
  if (in.empty()) return;
  const kernels::LoopNest nest = kernels::permutation_nest(step.dims, step.order, invert);
  if (step.unit == Unit::kNibble) {
    kernels::permute_nibbles(nest, in.data(), out.data());
  } else {
    kernels::permute_bytes(nest, unit_bits(step.unit) / 8, in.data(), out.data());
  }
}

void run_gather(const GatherRows& step, bool invert, ConstBytes in, MutableBytes out) {
  const auto size = static_cast<size_t>(step.row_bytes);
  for (size_t d = 0; d < step.source.size(); ++d) {
    const auto s = static_cast<size_t>(step.source[d]);
    const size_t from = invert ? d : s;
    const size_t to = invert ? s : d;
    std::memcpy(out.data() + to * size, in.data() + from * size, size);
  }
}

void run_pad(const PadMatrix& step, ConstBytes in, MutableBytes out) {
  const auto in_row = static_cast<size_t>(step.row_bytes);
  const auto out_row = static_cast<size_t>(step.out_row_bytes);
  const auto rows = static_cast<size_t>(step.rows);
  for (size_t r = 0; r < rows; ++r) {
    std::memcpy(out.data() + r * out_row, in.data() + r * in_row, in_row);
    std::ranges::fill(out.subspan(r * out_row + in_row, out_row - in_row), step.fill);
  }
  std::ranges::fill(out.subspan(rows * out_row), step.fill);
}

void run_crop(const PadMatrix& step, ConstBytes in, MutableBytes out) {
  const auto in_row = static_cast<size_t>(step.row_bytes);
  const auto out_row = static_cast<size_t>(step.out_row_bytes);
  for (size_t r = 0; r < static_cast<size_t>(step.rows); ++r) {
    std::memcpy(out.data() + r * in_row, in.data() + r * out_row, in_row);
  }
}

}  // namespace

int64_t unit_bits(Unit unit) {
  switch (unit) {
    case Unit::kNibble:
      return 4;
    case Unit::kByte:
      return 8;
    case Unit::kWord16:
      return 16;
    case Unit::kWord32:
      return 32;
  }
  return 0;
}

int64_t step_in_bytes(const Step& step) {
  return std::visit(
      Overloaded{
          [](const Permute& s) { return permute_bytes_of(s); },
          [](const GatherRows& s) { return s.row_bytes * static_cast<int64_t>(s.source.size()); },
          [](const PadMatrix& s) { return s.rows * s.row_bytes; },
          [](const Recode& s) { return s.recoding->in_bytes * s.count; },
          [](const Custom& s) { return s.in_bytes; },
      },
      step);
}

int64_t step_out_bytes(const Step& step) {
  return std::visit(
      Overloaded{
          [](const Permute& s) { return permute_bytes_of(s); },
          [](const GatherRows& s) { return s.row_bytes * static_cast<int64_t>(s.source.size()); },
          [](const PadMatrix& s) { return s.out_rows * s.out_row_bytes; },
          [](const Recode& s) { return s.recoding->out_bytes * s.count; },
          [](const Custom& s) { return s.out_bytes; },
      },
      step);
}

void step_forward(const Step& step, ConstBytes in, MutableBytes out) {
  std::visit(Overloaded{
                 [&](const Permute& s) { run_permute(s, false, in, out); },
                 [&](const GatherRows& s) { run_gather(s, false, in, out); },
                 [&](const PadMatrix& s) { run_pad(s, in, out); },
                 [&](const Recode& s) { s.recoding->forward(in, out); },
                 [&](const Custom& s) { s.forward(in, false, out); },
             },
             step);
}

void step_inverse(const Step& step, ConstBytes in, MutableBytes out) {
  std::visit(Overloaded{
                 [&](const Permute& s) { run_permute(s, true, in, out); },
                 [&](const GatherRows& s) { run_gather(s, true, in, out); },
                 [&](const PadMatrix& s) { run_crop(s, in, out); },
                 [&](const Recode& s) { s.recoding->inverse(in, out); },
                 [&](const Custom& s) { s.inverse(in, false, out); },
             },
             step);
}

}  // namespace mxfp4
