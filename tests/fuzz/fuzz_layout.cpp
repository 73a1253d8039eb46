// libFuzzer target: the first bytes choose a layout row, a target, a slot's sizes and dtype, the
// rest is one granule's data. Forward and back must give the data again, unless the output says
// that something is lost or the layout refuses.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"
#include "lib/layouts/knobs.hpp"
#include "lib/layouts/run_output.hpp"
#include "lib/revisions/revisions.hpp"
#include "tests/property/target_space.hpp"

namespace {

using mxfp4::ConstBytes;
using Bytes = std::vector<std::byte>;

// The fuzzer's bytes one after another; zeros when they are used up.
class Choices {
 public:
  Choices(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  uint8_t next() { return at_ < size_ ? data_[at_++] : uint8_t{0}; }
  size_t below(size_t n) { return next() % n; }
  Bytes bytes(int64_t count) {
    Bytes out(static_cast<size_t>(count));
    for (std::byte& b : out) b = static_cast<std::byte>(next());
    return out;
  }

 private:
  const uint8_t* data_;
  size_t size_;
  size_t at_ = 0;
};

mxfp4::Target choose_target(const mxfp4::LayoutRow& row, Choices& choices) {
  const auto family = choices.below(2) == 0 ? mxfp4::Family::kGptOss : mxfp4::Family::kGeneric;
  const auto targets = mxfp4::test::targets_of(row.backend, family, true);
  const size_t at = choices.next() * size_t{256} + choices.next();
  return targets[at % targets.size()];
}

mxfp4::LoadedSpec choose_sizes(Choices& choices) {
  mxfp4::LoadedSpec spec;
  spec.dims = {1 + static_cast<int64_t>(choices.below(3)),
               32 * (1 + static_cast<int64_t>(choices.below(12))),
               32 * (1 + static_cast<int64_t>(choices.below(12)))};
  switch (choices.below(3)) {
    case 0:
      spec.bias = mxfp4::DType::kBF16;
      break;
    case 1:
      spec.bias = mxfp4::DType::kF32;
      break;
    default:
      break;
  }
  spec.input_scales = choices.below(2) == 1;
  return spec;
}

void round_trip(const mxfp4::Output& output, const mxfp4::LoadedSpec& spec, Choices& choices) {
  const int64_t experts = output.experts_per_granule;
  std::vector<Bytes> loaded;
  mxfp4::SlotBytes granule;
  for (mxfp4::Slot slot : mxfp4::slots_read(output)) {
    loaded.push_back(choices.bytes(experts * spec.expert(slot).bytes()));
    granule.set(slot, loaded.back());
  }
  const auto written_bytes = static_cast<size_t>(output.program.out_bytes());
  Bytes written(written_bytes, std::byte{0xA5});
  Bytes again(written_bytes, std::byte{0x5A});
  Bytes scratch(static_cast<size_t>(mxfp4::scratch_bytes(output)));
  mxfp4::run_forward(output, granule, written, scratch);
  mxfp4::run_forward(output, granule, again, scratch);
  if (written != again) std::abort();  // a byte is not written
  if (!output.restores_slot) return;
  // Other outputs that the inverse needs are made in layout_golden_test; here it reads one.
  if (output.combination && !output.combination->inverse_from.empty()) return;
  Bytes restored(loaded.front().size());
  mxfp4::run_inverse(output, written, {}, restored, scratch);
  if (output.lost.empty() && restored != loaded.front()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Choices choices(data, size);
  const mxfp4::RuleSet& rules = mxfp4::revision_by_name("vllm-2026-05-18");
  const mxfp4::LayoutRow& chosen = rules.layouts[choices.below(rules.layouts.size())];
  const mxfp4::Target target = choose_target(chosen, choices);
  try {
    const mxfp4::LayoutRow* row = mxfp4::find_layout_row(rules, target);
    if (row == nullptr || row->layout == nullptr) return 0;
    const mxfp4::LoadedSpec spec = choose_sizes(choices);
    const size_t which = choices.next();
    const mxfp4::LayoutInput input{spec, mxfp4::layout_parameters(target)};
    const auto outputs = make_outputs(*row->layout, input);
    const mxfp4::Output& output = outputs[which % outputs.size()];
    Choices same = choices;
    if (checks_data(*row->layout)) {
      const Bytes slot = same.bytes(output.experts_per_granule * spec.expert(output.slot).bytes());
      (void)check_granule(*row->layout, input, output.slot, slot);
    }
    round_trip(output, spec, choices);
  } catch (const mxfp4::Error& error) {
    // Targets that no flags give, such as HUMMING on ROCm, count as misuse.
    const bool refusal =
        error.kind() == mxfp4::ErrorKind::kUnsupported || error.kind() == mxfp4::ErrorKind::kUsage;
    if (!refusal) std::abort();
  }
  return 0;
}
