#include "tests/golden/tensor_difference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace mxfp4::test {
namespace {

// One bit of an output as a function of the loaded bits of one granule of its own slot.
class BitProbe {
 public:
  BitProbe(const Output& output, const LoadedLayer& layer, int64_t byte, int bit)
      : output_(output), bit_(bit) {
    const int64_t granule_bytes = output.program.out_bytes();
    granule_ = byte / granule_bytes;
    byte_ = byte % granule_bytes;
    granules_ = granule_count(output, layer.spec.dims.num_experts);
    slots_ = layer.bytes().granule(granule_, granules_);
    own_.assign(slots_[output.slot].begin(), slots_[output.slot].end());
    out_.resize(static_cast<size_t>(granule_bytes));
    scratch_.resize(static_cast<size_t>(scratch_bytes(output)));
  }

  [[nodiscard]] int64_t loaded_bits() const { return static_cast<int64_t>(own_.size()) * 8; }
  // Where the granule begins in the slot's tensor, in bytes.
  [[nodiscard]] int64_t granule_begin() const {
    return granule_ * static_cast<int64_t>(own_.size());
  }

  // The bit after those loaded bits for which `turned` holds were inverted.
  bool with(const std::function<bool(int64_t)>& turned) {
    std::vector<std::byte> loaded = own_;
    for (int64_t i = 0; i < loaded_bits(); ++i) {
      if (turned(i)) loaded[static_cast<size_t>(i / 8)] ^= std::byte{1} << (i % 8);
    }
    SlotBytes slots = slots_;
    slots.set(output_.slot, loaded);
    run_forward(output_, slots, out_, scratch_);
    return (out_[static_cast<size_t>(byte_)] >> bit_ & std::byte{1}) != std::byte{0};
  }

 private:
  const Output& output_;
  int bit_;
  int64_t granule_ = 0;
  int64_t granules_ = 0;
  int64_t byte_ = 0;
  SlotBytes slots_;
  std::vector<std::byte> own_, out_, scratch_;
};

}  // namespace

std::optional<ByteDifference> find_difference(ConstBytes found, ConstBytes expected) {
  const auto [f, e] = std::ranges::mismatch(found, expected);
  if (e == expected.end()) return std::nullopt;
  return ByteDifference{e - expected.begin(), *e, *f};
}

std::string element_text(const TensorSpec& spec, int64_t byte) {
  const int64_t size = dtype_bytes(spec.dtype);
  int64_t element = byte / size;
  std::vector<int64_t> index(static_cast<size_t>(spec.shape.rank()));
  for (size_t axis = index.size(); axis-- > 0;) {
    const int64_t dim = spec.shape[static_cast<int>(axis)];
    index[axis] = element % dim;
    element /= dim;
  }
  const std::string text = fmt::format("[{}]", fmt::join(index, ", "));
  return size == 1 ? text : fmt::format("{}, byte {} of {}", text, byte % size, size);
}

std::string difference_text(const TensorSpec& spec, const ByteDifference& difference) {
  return fmt::format("element {} (byte {}): expected {:#04x}, found {:#04x}",
                     element_text(spec, difference.byte), difference.byte,
                     std::to_integer<unsigned>(difference.expected),
                     std::to_integer<unsigned>(difference.found));
}

std::string source_text(const Output& output, const LoadedLayer& layer, int64_t byte, int bit) {
  BitProbe probe(output, layer, byte, bit);
  const auto turns = [&, as_loaded = probe.with([](int64_t) { return false; })](auto turned) {
    return probe.with(turned) != as_loaded;
  };
  // The loaded bit's number, digit by digit.
  int64_t source = 0;
  for (int digit = 0; int64_t{1} << digit < probe.loaded_bits(); ++digit) {
    if (turns([&](int64_t i) { return (i >> digit & 1) != 0; })) source |= int64_t{1} << digit;
  }
  const std::string_view slot = slot_name(output.slot);
  if (source < probe.loaded_bits() && turns([&](int64_t i) { return i == source; })) {
    const TensorSpec spec = layer.spec.tensor(output.slot);
    return fmt::format("{} {}, bit {}", slot,
                       element_text(spec, probe.granule_begin() + source / 8), source % 8);
  }
  if (source == 0) return fmt::format("no bit of {}: padding", slot);
  return fmt::format("more than one bit of {}", slot);
}

}  // namespace mxfp4::test
