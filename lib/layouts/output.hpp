// What a layout makes: the tensors that one backend's kernel reads. This is what other rooms know
// of layouts; how a layout is written (layout.hpp, slot_outputs.hpp, ...) is the layouts'
// own business.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/core/backend.hpp"
#include "lib/core/layer.hpp"
#include "lib/core/storage.hpp"
#include "lib/steps/program.hpp"

namespace mxfp4 {

struct Layout;

// What a layout's bytes may depend on beside sizes. A layout says which of them it reads.
struct LayoutParameters {
  Family family = Family::kGptOss;  // the converter
  std::string params_dtype = "bfloat16";
  std::string humming_input_dtype = "none";
  friend bool operator==(const LayoutParameters&, const LayoutParameters&) = default;
};

// The input of a layout: the padded layer of one rank, and the parameters.
struct LayoutInput {
  LoadedSpec loaded;
  LayoutParameters parameters{};
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
  // False for an output from which no slot is restored (humming's global scales). If `lost` says
  // why, no other output restores the slot either, and unpack refuses blobs of the layout.
  bool restores_slot = true;
  Storage storage;
};

// A layout's name: "flashinfer/trtllm". Never reused with another meaning.
[[nodiscard]] std::string_view id_of(const Layout& layout);
// "flashinfer 0.6.11.post2" where the layout's bytes depend on the version, else empty.
[[nodiscard]] std::string_view kernel_library_of(const Layout& layout);
// The parameters that the layout reads, by name, in a fixed order: {"params_dtype", "float16"}.
[[nodiscard]] std::vector<std::pair<std::string_view, std::string>> parameters_of(
    const Layout& layout, const LayoutParameters& parameters);

// The outputs for a layer. Throws Error::unsupported when a precondition of the layout does not
// hold, naming the precondition.
[[nodiscard]] std::vector<Output> make_outputs(const Layout& layout, const LayoutInput& input);

// Whether check_granule() looks at the bytes, and whether it refuses some block scales, so that a
// decision has to read them.
[[nodiscard]] bool checks_data(const Layout& layout);
[[nodiscard]] bool refuses_scales(const Layout& layout);
// Checks one granule's loaded bytes of `slot`, such as a largest scale. Returns a warning, or "".
// Throws Error::unsupported. Requires checks_data().
[[nodiscard]] std::string check_granule(const Layout& layout, const LayoutInput& input, Slot slot,
                                        ConstBytes granule);

}  // namespace mxfp4
