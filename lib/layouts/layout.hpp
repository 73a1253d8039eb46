// A layout turns a loaded layer into the tensors that one backend's kernel reads: one file each in
// this folder, one row each in a revision's table.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/core/deployment.hpp"
#include "lib/core/layer.hpp"
#include "lib/steps/program.hpp"

namespace mxfp4 {

// The input of a layout: the padded layer of one rank, and the target.
struct LayoutInput {
  LoadedSpec loaded;
  Target target;
};

// Facts that a consumer needs to build the engine's object around the bytes, and that safetensors
// cannot hold. Empty fields are not written.
struct Storage {
  std::string torch_dtype;  // where it differs from the file's: "float8_e4m3fn"
  std::string layout;       // wrapper class, "HopperMXValueLayout"
  std::string layout_name;  // the constant that the kernel sees, "HOPPER_VALUE"
  std::vector<std::pair<std::string, int64_t>> layout_kwargs;
  std::vector<int64_t> layout_init_shape;
  std::vector<int64_t> storage_shape;
  std::vector<int64_t> storage_strides;
  std::vector<int64_t> logical_shape;
  std::string logical_dtype;       // "fp4_e2m1"
  int64_t slack_bytes = 0;         // readable bytes that a kernel touches past the end
  std::vector<std::string> flags;  // attributes set on the tensor object, "is_shuffled"
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

struct Layout {
  std::string_view id;           // "flashinfer/trtllm"; never reused with another meaning
  std::string_view backends;     // for people: which backends use it
  std::string_view outputs_doc;  // shapes and dtypes, a line each
  std::string_view formula;      // the index formula, a line each
  std::string_view preconditions;
  std::string_view source;          // project, version, function
  std::string_view kernel_library;  // "flashinfer 0.6.11.post2" where bytes depend on it, or empty
  // The outputs for a layer. Throws Error::unsupported when a precondition does not hold, naming
  // it.
  std::vector<Output> (*outputs)(const LayoutInput& input);
  // Checks that depend on the data of one slot, such as a largest scale; may be null. Given one
  // granule's loaded bytes of `slot`; throws Error::unsupported, or returns a warning ("" for
  // none).
  std::string (*check_data)(const LayoutInput& input, Slot slot, ConstBytes granule);
  // Whether check_data throws for some block scales, so that a decision has to read them.
  bool refuses_scales = false;
};

// Precondition helper: throws Error::unsupported "<what> must be a multiple of <m>, found <n>".
void require_multiple(std::string_view layout_id, std::string_view what, int64_t value, int64_t m);

// An output that passes its slot through `program` expert by expert, named as the slot.
[[nodiscard]] Output slot_output(const LoadedSpec& loaded, Slot slot, TensorSpec spec,
                                 Program program);
// The slot unchanged.
[[nodiscard]] Output identity_output(const LoadedSpec& loaded, Slot slot);
// The outputs of a layout that moves block scales alone: `scale_output` for both of them, weights
// unchanged, biases unchanged where there are any.
[[nodiscard]] std::vector<Output> scales_only(const LoadedSpec& loaded,
                                              Output (*scale_output)(const LoadedSpec&, Slot));
// A bias widened to F32 in its own order; an F32 bias passes unchanged.
[[nodiscard]] Output f32_bias_output(const LoadedSpec& loaded, Slot slot);

}  // namespace mxfp4
