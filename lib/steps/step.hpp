// Reversible steps on one expert's bytes. Each step knows its input and output size and runs in
// both directions, so a layout states its permutation once and the inverse cannot drift from it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "lib/core/tensor.hpp"

namespace mxfp4 {

// The unit that a permutation moves. A nibble is one e2m1 code: element 2j of a row is the low
// nibble of byte j.
enum class Unit : uint8_t { kNibble, kByte, kWord16, kWord32 };
[[nodiscard]] int64_t unit_bits(Unit unit);

// out = in.reshape(dims).permute(order): output axis i is input axis order[i], sizes in units.
// For nibbles the last output axis must be even.
struct Permute {
  Unit unit = Unit::kByte;
  std::vector<int64_t> dims;
  std::vector<int> order;
};

// Output row d is input row source[d]; rows of `row_bytes` bytes. `source` is a permutation.
struct GatherRows {
  int64_t row_bytes = 0;
  std::vector<int64_t> source;
};

// A rows x row_bytes matrix is placed at the top left of a larger one; the rest is `fill`. The
// inverse crops.
struct PadMatrix {
  int64_t rows = 0;
  int64_t row_bytes = 0;
  int64_t out_rows = 0;
  int64_t out_row_bytes = 0;
  std::byte fill{0};
};

// A map of equal-sized elements, one by one, such as BF16 -> F32. Static data; see recodings.hpp.
struct Recoding {
  std::string_view name;
  int64_t in_bytes;   // of one element
  int64_t out_bytes;  // of one element
  void (*forward)(ConstBytes in, MutableBytes out);
  void (*inverse)(ConstBytes in, MutableBytes out);
  // Four bytes to four, and each bit of an output element is one bit of the input element.
  bool moves_bits = false;
};

struct Recode {
  const Recoding* recoding = nullptr;
  int64_t count = 0;  // elements
};

// Code of its own for what the steps above cannot say, or say more slowly.
struct Custom {
  std::string_view name;
  int64_t in_bytes = 0;
  int64_t out_bytes = 0;
  // More than 0: the step maps each block of this many bytes independently, to the same place of
  // the output; the functions then take any number of blocks.
  int64_t piece_bytes = 0;
  // With `streaming` the output may go past the caches, and the caller must call finish_streaming()
  // (lib/kernels/copy.hpp) afterwards.
  std::function<void(ConstBytes in, bool streaming, MutableBytes out)> forward;
  std::function<void(ConstBytes in, bool streaming, MutableBytes out)> inverse;
  // The steps that give the same bytes; empty: there are none.
  std::vector<std::variant<Permute, Recode>> same_as{};
};

using Step = std::variant<Permute, GatherRows, PadMatrix, Recode, Custom>;

[[nodiscard]] int64_t step_in_bytes(const Step& step);
[[nodiscard]] int64_t step_out_bytes(const Step& step);
// `in` and `out` have exactly the step's sizes and do not overlap. Every output byte is written.
// Plain loops: these define the steps; programs run faster forms that equal them.
void step_forward(const Step& step, ConstBytes in, MutableBytes out);
void step_inverse(const Step& step, ConstBytes in, MutableBytes out);

}  // namespace mxfp4
