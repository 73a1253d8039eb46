// What a layout makes: the tensors that one backend's kernel reads. This is what other rooms know of
// layouts; how a layout is written (layout.hpp, slot_outputs.hpp, ...) is the layouts' own business.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/core/deployment.hpp"
#include "lib/core/layer.hpp"
#include "lib/layouts/storage.hpp"
#include "lib/steps/program.hpp"

namespace mxfp4 {

struct Layout;

// A layout's name: "flashinfer/trtllm". Never reused with another meaning.
[[nodiscard]] std::string_view id_of(const Layout& layout);

// The input of a layout: the padded layer of one rank, and the target.
struct LayoutInput {
  LoadedSpec loaded;
  Target target;
};

// The part of an output that is made from several slots, or from the values of all experts. It
// comes before the program and works on one granule of experts.
struct Combination {
  std::vector<Slot> slots;  // inputs, in order; the first is the output's own slot
  int64_t out_bytes = 0;    // for one granule
  std::function<void(std::span<const ConstBytes> in, MutableBytes out)> forward;
  // Inverse: rebuilds slots[0]'s bytes from this output (after the program's inverse) and from the
  // outputs named in `inverse_from`, whole granules in their written form.
  std::vector<std::string> inverse_from;
  std::function<void(ConstBytes own, std::span<const ConstBytes> others, MutableBytes out)> inverse;
};

struct Output {
  std::string name;  // "w13_weight"
  Slot slot = Slot::kW13Weight;
  TensorSpec spec;  // whole tensor as written; bytes = granules * program.out_bytes()
  // Bytes of one granule in, bytes of one granule out.
  Program program;
  // 1, or num_experts where upstream mixes experts.
  int64_t experts_per_granule = 1;
  std::optional<Combination> combination;
  // The part that the inverse loses, in words ("NaN payloads"); empty: it is exact.
  std::string lost;
  // False for an output from which no slot is restored (humming's global scales). If `lost` says why,
  // no other output restores the slot either, and unpack refuses blobs of the layout.
  bool restores_slot = true;
  Storage storage;
};

}  // namespace mxfp4
