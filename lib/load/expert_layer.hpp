// Where the expert tensors of a checkpoint lie: one ExpertLayer a MoE layer.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/core/backend.hpp"
#include "lib/core/dtype.hpp"
#include "lib/core/layer.hpp"
#include "lib/core/model_config.hpp"
#include "lib/load/published.hpp"

namespace mxfp4 {

// A named tensor of a source; the index into the list given to find_expert_layers identifies it.
struct NamedTensor {
  std::string name;
  TensorSpec spec;
  std::string file;  // for messages
};

// Throws Error::input that names the tensor and its file.
[[noreturn]] void refuse_tensor(const NamedTensor& tensor, const std::string& message);

// One slot of a layer as the checkpoint stores it. Expert e's matrix (rows x row_bytes, unsliced,
// unpadded) is the concatenation of experts[e]: one extent for a stacked or fused tensor, gate then
// up for separate ones. No extent at all: the reference creates the parameter and never fills it,
// so that it holds padding. Codes and scales are bytes whatever their dtype is called, but for scales of
// floats, which the loader encodes.
struct SlotSource {
  DType dtype = DType::kU8;  // of the stored elements; floats may be BF16, F16 or F32
  std::vector<std::vector<Extent>> experts;  // empty: the slot is absent
};

struct ExpertLayer {
  int64_t index = 0;          // layer number in the engine
  std::string prefix;         // module path in the checkpoint, "model.layers.3.mlp.experts"
  std::string engine_prefix;  // module path in the engine where it differs, else empty
  bool draft = false;         // a draft stage, by its name: numbered after the model's layers
  LayerDims dims;             // of the whole layer, as stored; E is the layer's own
  std::array<SlotSource, kAllSlots.size()> slots;
  // How the checkpoint stores it; empty: not known, or in a form that a blob cannot keep.
  std::optional<PublishedLayer> published{};

  [[nodiscard]] const SlotSource& slot(Slot s) const { return slots[static_cast<size_t>(s)]; }
  [[nodiscard]] bool has(Slot s) const { return !slot(s).experts.empty(); }
};

enum class Style : uint8_t {
  kGptOss,
  kGptOssOriginal,
  kDeepseekV4,
  kQuark,
  kCompressedTensors,
  kMxfp4,
  kLoaded,
};
// Every enumerator, in the order of the enumeration.
inline constexpr std::array<Style, 7> kAllStyles = {
    Style::kGptOss, Style::kGptOssOriginal,    Style::kDeepseekV4,
    Style::kQuark,  Style::kCompressedTensors, Style::kMxfp4,
    Style::kLoaded,
};
[[nodiscard]] std::string_view style_name(Style style);  // "gpt_oss", ...
[[nodiscard]] std::optional<Style> style_from_name(std::string_view name);

// How the engine's loader slices: see slice.hpp.
enum class Loader : uint8_t {
  kGptOssStacked,
  kGptOssPerExpert,
  kQuarkStacked,    // gpt-oss stacked tensors under a Quark config: cannot pad
  kInklingStacked,  // Inkling's stacked tensors: gate and up alternate as stored
  kGeneric,
  kLoaded,  // the input is what a loader left; whole or one rank's
};

[[nodiscard]] std::string_view loader_name(Loader loader);  // "gpt_oss_stacked", ...
[[nodiscard]] std::optional<Loader> loader_from_name(std::string_view name);

// A checkpoint's MoE layers and how its style's loader treats them.
struct ModelLayers {
  Style style = Style::kLoaded;
  Loader loader = Loader::kLoaded;
  Family family = Family::kGptOss;  // which converter runs after loading
  W13Order order = W13Order::kInterleaved;
  bool alternating = false;  // gate and up alternate as stored, and become halves: kInklingStacked
  bool flat_scales = false;  // stacked scales have two dimensions, experts and rows in one
  // The activation key of the checkpoint's own config, as Quantization::activation.
  std::string activation;
  std::byte scale_fill{0};          // padding of scales; 1 for Quark
  DType bias_dtype = DType::kBF16;  // in the loaded layout
  bool splits_experts = true;       // false: the input is one expert-parallel rank's already
  bool splits_intermediate = true;  // false: I may hold padding or be one rank's already
  int64_t num_experts = 0;          // of the first layer, and of most; others have their own
  std::vector<ExpertLayer> layers;  // ascending index; perhaps some of the model's only
  std::vector<size_t> rest;         // indices of all tensors that are not ours
  std::set<std::string> left_out;   // of the rest: experts' "bias", "input_scale", not loaded
  std::vector<std::string> warnings;

  // Whether a checkpoint's rules hold: false for an input in the loaded layout.
  [[nodiscard]] bool follows_checkpoint() const { return style != Style::kLoaded; }
};

struct FindOptions {
  std::optional<Style> style{};    // --style
  std::optional<Family> family{};  // --family
  bool generic_biases = false;     // the generic loader loads biases, where there are some
  bool encodes_scales = true;      // the MXFP4 method encodes scales that are floats
  bool unfilled_biases = true;     // a style's biases that are created and never filled are there
  std::map<std::string, std::string> attributes{};  // of the container: family, w13_order, ...
  // The config describes a whole model, and the tensors may be a part of it (--model-config):
  // layers that are not there are a warning, not an error.
  bool partial = false;
  // The tensors are experts only, and a conversion of the whole model found the layers complete:
  // their number is not compared with the config's.
  bool experts_only = false;
};

}  // namespace mxfp4
