// Runs one output of a layout on drawn bytes, all experts, forward and back. Positions are checked
// by the tests that include this, with the index formulas written out.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "lib/layouts/output.hpp"

namespace mxfp4::layout_test {

using Bytes = std::vector<std::byte>;

inline LayoutInput layer_of(int64_t experts, int64_t hidden, int64_t inter) {
  LayoutInput input;
  input.loaded.dims = {experts, hidden, inter};
  input.loaded.bias = DType::kBF16;
  return input;
}

inline Bytes drawn_bytes(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  Bytes bytes(static_cast<size_t>(count));
  for (std::byte& b : bytes) b = static_cast<std::byte>(random() & 0xFFU);
  return bytes;
}

inline Output output_named(const Layout& layout, const LayoutInput& input, std::string_view name) {
  for (Output& output : make_outputs(layout, input)) {
    if (output.name == name) return output;
  }
  ADD_FAILURE() << "no output " << name;
  return Output();
}

// Output bytes of the whole tensor `in`; the inverse must give `in` back.
inline Bytes pack_and_restore(const Output& output, const Bytes& in) {
  const Program& program = output.program;
  Bytes out(static_cast<size_t>(output.spec.bytes()), std::byte{0xEE});
  Bytes back(in.size(), std::byte{0xEE});
  Bytes scratch(static_cast<size_t>(program.scratch_bytes()));
  const auto in_size = static_cast<size_t>(program.in_bytes());
  const auto out_size = static_cast<size_t>(program.out_bytes());
  for (size_t e = 0; e * in_size < in.size(); ++e) {
    const MutableBytes packed = MutableBytes(out).subspan(e * out_size, out_size);
    program.forward(ConstBytes(in).subspan(e * in_size, in_size), packed, scratch);
    program.inverse(packed, MutableBytes(back).subspan(e * in_size, in_size), scratch);
  }
  EXPECT_EQ(back, in) << output.name << ": the inverse";
  return out;
}

// One output: its slot as loaded and as packed, both of all experts.
struct Case {
  int64_t experts;
  ExpertMatrix loaded;
  Bytes in;
  Bytes out;
  Output output;

  [[nodiscard]] std::byte in_at(int64_t e, int64_t row, int64_t column) const {
    return in[static_cast<size_t>(e * loaded.bytes() + row * loaded.row_bytes + column)];
  }
};

// Puts every loaded byte (n, column) at to(n, column) of its expert's `expert_bytes` bytes.
template <class To>
Bytes scattered(const Case& c, int64_t expert_bytes, To to) {
  Bytes want(static_cast<size_t>(c.experts * expert_bytes));
  for (int64_t e = 0; e < c.experts; ++e) {
    for (int64_t n = 0; n < c.loaded.rows; ++n) {
      for (int64_t k = 0; k < c.loaded.row_bytes; ++k) {
        want.at(static_cast<size_t>(e * expert_bytes + to(n, k))) = c.in_at(e, n, k);
      }
    }
  }
  return want;
}

// The multiple of b that is not below a.
inline int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b * b; }

inline Case run_case(const Layout& layout, const LayoutInput& input, Slot slot) {
  Case result{input.loaded.dims.num_experts, input.loaded.expert(slot), {}, {}, Output()};
  result.in = drawn_bytes(result.experts * result.loaded.bytes(), 7);
  result.output = output_named(layout, input, slot_name(slot));
  result.out = pack_and_restore(result.output, result.in);
  return result;
}

// A tensor of zeros with one byte set, packed.
inline Bytes packed_lone_byte(const Layout& layout, const LayoutInput& input, Slot slot,
                              int64_t row, int64_t column, int value) {
  const ExpertMatrix matrix = input.loaded.expert(slot);
  Bytes in(static_cast<size_t>(input.loaded.dims.num_experts * matrix.bytes()));
  in[static_cast<size_t>(row * matrix.row_bytes + column)] = static_cast<std::byte>(value);
  return pack_and_restore(output_named(layout, input, slot_name(slot)), in);
}

// Offsets of the bytes that are not zero.
inline std::vector<size_t> set_offsets(const Bytes& bytes) {
  std::vector<size_t> offsets;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != std::byte{0}) offsets.push_back(i);
  }
  return offsets;
}

}  // namespace mxfp4::layout_test
