// Rectangles of bytes: the slices and the padding of one expert.
#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"
#include "lib/core/float_bits.hpp"
#include "lib/load/slice.hpp"

namespace mxfp4 {
namespace {

template <class Bits>
Bits read(const std::byte* at) {
  Bits bits;
  std::memcpy(&bits, at, sizeof(bits));
  return bits;
}

uint32_t read_f32(const std::byte* at, DType dtype) {
  if (dtype == DType::kF32) return read<uint32_t>(at);
  const auto half = read<uint16_t>(at);
  return dtype == DType::kBF16 ? f32_from_bf16(half) : f32_from_f16(half);
}

// Converts one float to F32, to BF16, or to the byte of its nearest power of two, rounding NaNs as torch does on the CPU, where the
// loader copies.
void convert(const std::byte* from, DType from_type, std::byte* to, DType to_type) {
  const uint32_t word = read_f32(from, from_type);
  if (to_type == DType::kU8) {
    *to = std::byte{e8m0_from_f32(word)};
  } else if (to_type == DType::kF32) {
    std::memcpy(to, &word, sizeof(word));
  } else {
    const uint16_t half = bf16_from_f32(word, kTorchBf16Nan);
    std::memcpy(to, &half, sizeof(half));
  }
}

// Writes `bytes` bytes of elements of type `from` as elements of type `to`.
void copy_row(const std::byte* in, DType from, int64_t bytes, std::byte* out, DType to) {
  if (from == to) {
    std::memcpy(out, in, static_cast<size_t>(bytes));
    return;
  }
  for (int64_t i = 0; i < bytes / dtype_bytes(from); ++i) {
    convert(in + i * dtype_bytes(from), from, out + i * dtype_bytes(to), to);
  }
}

// The inverse of copy_row where that was exact: BF16 or F16 that was widened to F32.
void narrow_row(const std::byte* in, DType from, int64_t bytes, std::byte* out, DType to) {
  for (int64_t i = 0; i < bytes / dtype_bytes(from); ++i) {
    const auto word = read<uint32_t>(in + i * dtype_bytes(from));
    // F16's NaNs keep their payloads in the upper bits of F32's, which rounding would not.
    const bool nan = (word & 0x7FFFFFFFU) > 0x7F800000U;
    const auto f16 =
        nan ? static_cast<uint16_t>((word >> 16 & 0x8000U) | 0x7C00U | (word >> 13 & 0x3FFU))
            : f16_from_f32(word);
    const auto half = to == DType::kBF16 ? static_cast<uint16_t>(word >> 16) : f16;
    std::memcpy(out + i * dtype_bytes(to), &half, sizeof(half));
  }
}

bool is_bias(Slot slot) { return slot == Slot::kW13Bias || slot == Slot::kW2Bias; }
bool is_input_scale(Slot slot) {
  return slot == Slot::kW13InputScale || slot == Slot::kW2InputScale;
}
bool is_scale(Slot slot) { return slot == Slot::kW13WeightScale || slot == Slot::kW2WeightScale; }

// Elements of the contraction dimension that one byte of a row covers; 0: the rows are single
// elements.
int64_t elements_per_byte(Slot slot) {
  if (slot == Slot::kW13Weight || slot == Slot::kW2Weight) return kCodesPerByte;
  return is_scale(slot) ? kBlock : 0;
}

// The rectangles of rows [begin, end) of the intermediate dimension. `from_inter` and `to_inter`
// are the sizes of that dimension on both sides: where the second half begins. `alternating`: gate
// and up alternate as stored, and become halves.
std::vector<CopyRect> rectangles(Slot slot, W13Order order, int64_t begin, int64_t end,
                                 int64_t from_inter, int64_t to_inter, int64_t hidden,
                                 int64_t element, bool alternating = false) {
  const int64_t count = end - begin;
  const int64_t per_byte = elements_per_byte(slot);
  if (count == 0 && (slot_is_w13(slot) || per_byte != 0)) return {};
  if (!slot_is_w13(slot)) {
    if (per_byte == 0) return {{0, 0, hidden, element, 0}};
    return {{0, begin / per_byte * element, hidden, count / per_byte * element, 0}};
  }
  const int64_t columns = per_byte == 0 ? element : hidden / per_byte * element;
  if (order == W13Order::kInterleaved) return {{2 * begin, 0, 2 * count, columns, 0}};
  if (alternating) {
    return {{2 * begin, 0, count, columns, 0, 2}, {2 * begin + 1, 0, count, columns, to_inter, 2}};
  }
  return {{begin, 0, count, columns, 0}, {from_inter + begin, 0, count, columns, to_inter}};
}

// The tail of H among the scales of a loaded matrix: beside the rank's rows in w13, below them
// in w2.
std::vector<ByteRect> hidden_tails(Slot slot, W13Order order, const ExpertMatrix& loaded,
                                   const LayerDims& dims, const RankSlice& slice) {
  if (slice.padded.hidden_size == dims.hidden_size) return {};
  const int64_t inter = slice.end - slice.begin;
  if (!slot_is_w13(slot)) {
    return {{dims.hidden_size, loaded.rows - dims.hidden_size, 0, inter / kBlock}};
  }
  const int64_t from = dims.hidden_size / kBlock;
  const int64_t columns = loaded.row_bytes - from;
  if (order == W13Order::kInterleaved) return {{0, 2 * inter, from, columns}};
  return {{0, inter, from, columns}, {slice.padded.intermediate_size, inter, from, columns}};
}

// Throws Error::internal unless every rectangle lies in both matrices and, in the loaded one, below
// the rectangle before it.
Assembly checked(Assembly assembly) {
  int64_t next_row = 0;
  for (const CopyRect& rect : assembly.rects) {
    const int64_t to_bytes = rect.col_bytes / dtype_bytes(assembly.from) * dtype_bytes(assembly.to);
    const bool inside = rect.from_row >= 0 && rect.from_col >= 0 && rect.rows >= 0 &&
                        rect.col_bytes >= 0 && rect.to_row >= next_row && rect.step > 0 &&
                        rect.from_row + (rect.rows - 1) * rect.step < assembly.stored.rows &&
                        rect.from_col + rect.col_bytes <= assembly.stored.row_bytes &&
                        rect.to_row + rect.rows <= assembly.loaded.rows &&
                        to_bytes <= assembly.loaded.row_bytes;
    if (!inside) throw Error::internal("a slice lies outside of its matrices");
    next_row = rect.to_row + rect.rows;
  }
  return assembly;
}

}  // namespace

ScaleFill scale_fill_of(const ModelLayers& model, const RankSlice& slice) {
  return {slice.hidden_fill.value_or(model.scale_fill),
          slice.intermediate_fill.value_or(model.scale_fill)};
}

bool Assembly::identity() const {
  return stored.rows == loaded.rows && stored.row_bytes == loaded.row_bytes && keeps_rows();
}

bool Assembly::pads_only() const { return !identity() && keeps_rows() && tails.empty(); }

bool Assembly::keeps_rows() const {
  if (from != to) return false;
  int64_t rows = 0;
  for (const CopyRect& rect : rects) {
    const bool in_place = rect.from_row == rect.to_row && rect.from_col == 0 && rect.step == 1;
    if (!in_place || rect.col_bytes != stored.row_bytes) return false;
    rows += rect.rows;
  }
  return rows == stored.rows;
}

void Assembly::forward(ConstBytes in, MutableBytes out) const {
  if (static_cast<int64_t>(in.size()) != stored.bytes() ||
      static_cast<int64_t>(out.size()) != loaded.bytes()) {
    throw Error::internal("an assembly was given buffers of other sizes");
  }
  if (identity()) {
    if (!in.empty()) std::memcpy(out.data(), in.data(), in.size());
    return;
  }
  const auto pad = [&](int64_t begin, int64_t end) {
    std::fill(out.begin() + begin, out.begin() + end, fill);
  };
  // The bytes between the rectangles are padding.
  int64_t done = 0;
  for (const CopyRect& rect : rects) {
    const int64_t columns = rect.col_bytes / dtype_bytes(from) * dtype_bytes(to);
    for (int64_t row = 0; row < rect.rows; ++row) {
      const std::byte* source =
          in.data() + (rect.from_row + row * rect.step) * stored.row_bytes + rect.from_col;
      const int64_t at = (rect.to_row + row) * loaded.row_bytes;
      pad(done, at);
      copy_row(source, from, rect.col_bytes, out.data() + at, to);
      done = at + columns;
    }
  }
  pad(done, loaded.bytes());
  for (const ByteRect& tail : tails) {
    for (int64_t row = tail.row; row < tail.row + tail.rows; ++row) {
      std::fill_n(out.begin() + row * loaded.row_bytes + tail.column, tail.columns, tail_fill);
    }
  }
}

void Assembly::backward(ConstBytes in, MutableBytes out) const {
  if (static_cast<int64_t>(out.size()) != stored.bytes() ||
      static_cast<int64_t>(in.size()) != loaded.bytes()) {
    throw Error::internal("an assembly was given buffers of other sizes");
  }
  const bool widened = from != to && to == DType::kF32;
  for (const CopyRect& rect : rects) {
    const int64_t columns = rect.col_bytes / dtype_bytes(from) * dtype_bytes(to);
    for (int64_t row = 0; row < rect.rows; ++row) {
      const std::byte* source = in.data() + (rect.to_row + row) * loaded.row_bytes;
      std::byte* target =
          out.data() + (rect.from_row + row * rect.step) * stored.row_bytes + rect.from_col;
      if (widened) {
        narrow_row(source, to, columns, target, from);
      } else {
        copy_row(source, to, columns, target, from);
      }
    }
  }
}

Assembly make_assembly(const ModelLayers& model, const ExpertLayer& layer, Slot slot,
                       const RankSlice& slice) {
  if (!layer.has(slot)) throw Error::internal("an assembly of an absent slot");
  const SlotSource& source = layer.slot(slot);
  const DType kept = is_bias(slot) ? model.bias_dtype : DType::kF32;
  Assembly out;
  const bool floats = is_bias(slot) || is_input_scale(slot);
  out.from = source.dtype;
  out.to = floats ? kept : DType::kU8;
  out.loaded = LoadedSpec{slice.padded, out.to, true}.expert(slot);
  if (is_scale(slot)) {
    const ScaleFill fill = scale_fill_of(model, slice);
    out.fill = fill.intermediate;
    out.tail_fill = fill.hidden;
    if (fill.hidden != fill.intermediate) {
      out.tails = hidden_tails(slot, model.order, out.loaded, layer.dims, slice);
    }
  }
  if (source.experts.front().empty()) {  // never filled
    out.from = out.to;
    return out;
  }
  out.stored = LoadedSpec{layer.dims, out.from, true}.expert(slot);
  if (is_scale(slot)) out.stored.row_bytes *= dtype_bytes(out.from);
  if (is_input_scale(slot)) {
    out.stored.row_bytes = dtype_bytes(out.from);
    out.rects = {{0, 0, 1, out.stored.row_bytes, 0}};
  } else if (slot != Slot::kW2Bias || slice.w2_bias) {
    out.rects = rectangles(slot, model.order, slice.begin, slice.end, layer.dims.intermediate_size,
                           slice.padded.intermediate_size, layer.dims.hidden_size,
                           dtype_bytes(out.from), model.alternating);
  }
  return checked(std::move(out));
}

}  // namespace mxfp4
