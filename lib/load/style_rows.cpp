#include "lib/load/style_rows.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lib/core/dtype.hpp"

namespace mxfp4 {
namespace {

constexpr std::array kFused = {
    ProjectionWord{"gate_up_proj", Projection::kGateUp},
    ProjectionWord{"down_proj", Projection::kDown},
};
constexpr std::array kOriginal = {
    ProjectionWord{"mlp1", Projection::kGateUp},
    ProjectionWord{"mlp2", Projection::kDown},
};
constexpr std::array kEngines = {
    ProjectionWord{"w13", Projection::kGateUp},
    ProjectionWord{"w2", Projection::kDown},
};
constexpr std::array kNumbered = {
    ProjectionWord{"w1", Projection::kGate},
    ProjectionWord{"w3", Projection::kUp},
    ProjectionWord{"w2", Projection::kDown},
};
constexpr std::array kSplit = {
    ProjectionWord{"gate_proj", Projection::kGate}, ProjectionWord{"up_proj", Projection::kUp},
    ProjectionWord{"down_proj", Projection::kDown}, ProjectionWord{"w1", Projection::kGate},
    ProjectionWord{"w3", Projection::kUp},          ProjectionWord{"w2", Projection::kDown},
};

constexpr std::array<std::string_view, 2> kMxfp4Methods = {"mxfp4", "gpt_oss_mxfp4"};
constexpr std::array<std::string_view, 2> kFp8Methods = {"fp8", "deepseek_v4_fp8"};
constexpr std::array<std::string_view, 1> kQuarkMethods = {"quark"};
// AutoRound exports for llm-compressor store the same tensors.
constexpr std::array<std::string_view, 3> kCompressedTensorsMethods = {"compressed-tensors",
                                                                       "auto-round", "inc"};

constexpr std::byte kZero{0};
constexpr std::byte kOne{1};

constexpr StyleRow kGptOssRow = {
    .style = Style::kGptOss,
    .marker = ".experts.",
    .stacked = true,
    .projections = kFused,
    .suffixes = {"_blocks", "_scales", "_bias", ""},
    .methods = kMxfp4Methods,
    .model = ModelRule::kGptOss,
    .bias = BiasRule::kRequired,
    .every_layer = true,
    .loader = Loader::kGptOssStacked,
    .family = Family::kGptOss,
    .order = W13Order::kInterleaved,
    .scale_fill = kZero,
    .bias_dtype = DType::kBF16,
    .takes_exponents = false,
    .encodes = false,
    .method = "GptOssMxfp4MoEMethod",
};

constexpr StyleRow original_row() {
  StyleRow row = kGptOssRow;
  row.style = Style::kGptOssOriginal;
  row.marker = ".mlp.";
  row.projections = kOriginal;
  row.suffixes = {"_weight.blocks", "_weight.scales", "_bias", ""};
  return row;
}

constexpr StyleRow kQuarkRow = {
    .style = Style::kQuark,
    .marker = ".experts.",
    .stacked = false,
    .projections = kSplit,
    .suffixes = {".weight", ".weight_scale", ".bias", ".input_scale"},
    .methods = kQuarkMethods,
    .model = ModelRule::kNotGptOss,
    .bias = BiasRule::kIgnored,
    .every_layer = false,
    .loader = Loader::kGeneric,
    .family = Family::kGptOss,
    .order = W13Order::kHalves,
    .scale_fill = kOne,
    .bias_dtype = DType::kF32,
    .takes_exponents = false,
    .encodes = false,
    .method = "QuarkOCP_MX_MoEMethod",
};

constexpr StyleRow quark_per_expert_row() {
  StyleRow row = kQuarkRow;
  row.projections = kFused;
  row.model = ModelRule::kGptOss;
  row.bias = BiasRule::kRequired;
  row.every_layer = true;
  row.loader = Loader::kGptOssPerExpert;
  row.order = W13Order::kInterleaved;
  return row;
}

constexpr StyleRow quark_stacked_row() {
  StyleRow row = quark_per_expert_row();
  row.stacked = true;
  row.suffixes = kGptOssRow.suffixes;
  row.loader = Loader::kQuarkStacked;
  return row;
}

// Inkling (vLLM 0.33.0, models/inkling/amd/moe.py, load_expert_weight): the engine's own names,
// rows of gate and up alternating. The engine deals them into halves.
constexpr StyleRow inkling_row() {
  StyleRow row = kQuarkRow;
  row.stacked = true;
  row.projections = kEngines;
  row.suffixes = {"_weight", "_weight_scale", "", ""};
  row.model = ModelRule::kInkling;
  row.loader = Loader::kInklingStacked;
  return row;
}

constexpr StyleRow compressed_tensors_row() {
  StyleRow row = kQuarkRow;
  row.style = Style::kCompressedTensors;
  row.suffixes = {".weight_packed", ".weight_scale", ".bias", ""};
  row.methods = kCompressedTensorsMethods;
  row.family = Family::kGeneric;
  row.scale_fill = kZero;
  row.bias_dtype = DType::kBF16;
  row.method = "CompressedTensorsW4A4Mxfp4MoEMethod";
  return row;
}

constexpr StyleRow deepseek_v4_row() {
  StyleRow row = kQuarkRow;
  row.style = Style::kDeepseekV4;
  row.projections = kNumbered;
  row.suffixes = {".weight", ".scale", "", ""};
  row.methods = kFp8Methods;
  row.model = ModelRule::kAny;
  row.takes_exponents = true;
  row.encodes = true;
  row.every_layer = true;
  row.family = Family::kGeneric;
  row.scale_fill = kZero;
  row.bias_dtype = DType::kBF16;
  row.method = "Mxfp4MoEMethod";
  return row;
}

constexpr StyleRow mxfp4_row() {
  StyleRow row = kQuarkRow;
  row.style = Style::kMxfp4;
  row.suffixes = {".weight", ".weight_scale", ".bias", ""};
  row.methods = kMxfp4Methods;
  row.encodes = true;
  row.bias = BiasRule::kNeverFilled;
  row.scale_fill = kZero;
  row.bias_dtype = DType::kBF16;
  row.method = "Mxfp4MoEMethod";
  return row;
}

// Ling 3 (vLLM 0.33.0, models/bailing_moe_v3.py): MXFP4 experts in a model of FP8 blocks, with the
// names of those.
constexpr StyleRow mxfp4_in_fp8_row() {
  StyleRow row = mxfp4_row();
  row.suffixes = {".weight", ".weight_scale_inv", "", ""};
  row.methods = kFp8Methods;
  row.model = ModelRule::kMxfp4InFp8;
  row.bias = BiasRule::kIgnored;
  return row;
}

// MiMo-V2.6 (vLLM 0.33.0, quantization/fp8.py, Fp8Config.get_quant_method): such experts under the
// MXFP4 method's own names.
constexpr StyleRow stored_as_mxfp4_row() {
  StyleRow row = mxfp4_in_fp8_row();
  row.suffixes = {".weight", ".weight_scale", "", ""};
  return row;
}

// Not constexpr: Clang 14 copies no empty std::optional in a constant expression.
const std::array kRows = {
    kGptOssRow,
    original_row(),
    deepseek_v4_row(),
    quark_per_expert_row(),
    quark_stacked_row(),
    inkling_row(),
    kQuarkRow,
    compressed_tensors_row(),
    mxfp4_row(),
    mxfp4_in_fp8_row(),
    stored_as_mxfp4_row(),
};

// The number after the first "layers", "block" or "mtp" of a module path, and whether the path is
// of a multi-token prediction module: "mtp.0.ffn" or "mtp.layers.0.mlp".
bool parse_layer(ExpertTensorName& out) {
  std::string_view before;
  std::string_view rest = out.module;
  while (!rest.empty()) {
    const size_t dot = std::min(rest.find('.'), rest.size());
    const std::string_view part = rest.substr(0, dot);
    const bool numbered = before == "layers" || before == "block" || before == "mtp";
    if (const auto index = numbered ? parse_index(part) : std::nullopt) {
      out.layer = *index;
      return true;
    }
    out.draft = out.draft || part == "mtp";
    before = part;
    rest.remove_prefix(std::min(dot + 1, rest.size()));
  }
  return false;
}

bool is_gpt_oss(const ModelConfig& config) {
  return config.model_type == "gpt_oss" || config.original_gpt_oss;
}

}  // namespace

std::span<const StyleRow> style_rows() { return kRows; }

std::span<const DType> scale_types(const StyleRow& row, bool encodes_scales) {
  static constexpr std::array kTypes = {DType::kU8, DType::kF8E8M0, DType::kBF16, DType::kF16,
                                        DType::kF32};
  const size_t known = row.encodes && encodes_scales ? kTypes.size() : row.takes_exponents ? 2 : 1;
  return std::span(kTypes).first(known);
}

bool is_inkling(const ModelConfig& config) { return config.model_type.starts_with("inkling"); }

const StyleRow* find_style_row(Style style, Loader loader) {
  const auto found = std::ranges::find_if(
      kRows, [&](const StyleRow& row) { return row.style == style && row.loader == loader; });
  return found == kRows.end() ? nullptr : &*found;
}

bool row_allowed(const StyleRow& row, const ModelConfig& config) {
  const bool known = !config.quantization_only;  // else the names decide
  const std::string key = config.quantization ? config.quantization->routed_experts : std::string();
  if ((row.model == ModelRule::kMxfp4InFp8) != !key.empty()) return false;
  // Ling 3's scales have the name of FP8's.
  const bool inverse = row.suffixes[static_cast<size_t>(Field::kScales)].ends_with("_inv");
  if (!key.empty() && inverse != (key == "routed_experts_quant_method")) return false;
  if (known && row.model == ModelRule::kGptOss && !is_gpt_oss(config)) return false;
  if (row.model == ModelRule::kInkling && !is_inkling(config)) return false;
  const bool own = is_gpt_oss(config) || is_inkling(config);
  if (known && row.model == ModelRule::kNotGptOss && own) return false;
  const std::string_view method =
      config.quantization ? std::string_view{config.quantization->name} : row.methods.front();
  return std::find(row.methods.begin(), row.methods.end(), method) != row.methods.end();
}

std::optional<int64_t> parse_index(std::string_view text) {
  if (text.empty() || text.size() > 9) return std::nullopt;
  int64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

std::optional<ExpertTensorName> parse_expert_name(const StyleRow& row, std::string_view name) {
  const size_t at = name.rfind(row.marker);
  if (at == std::string_view::npos) return std::nullopt;
  ExpertTensorName out;
  out.module = name.substr(0, at + row.marker.size() - 1);
  std::string_view tail = name.substr(at + row.marker.size());
  if (!row.stacked) {
    const size_t dot = tail.find('.');
    if (dot == std::string_view::npos) return std::nullopt;
    const auto expert = parse_index(tail.substr(0, dot));
    if (!expert) return std::nullopt;
    out.expert = *expert;
    tail.remove_prefix(dot + 1);
  }
  for (const ProjectionWord& candidate : row.projections) {
    if (!tail.starts_with(candidate.word)) continue;
    const std::string_view suffix = tail.substr(candidate.word.size());
    for (size_t field = 0; field < kFields; ++field) {
      if (suffix.empty() || suffix != row.suffixes[field]) continue;
      out.word = tail.substr(0, candidate.word.size());
      out.projection = candidate.projection;
      out.field = static_cast<Field>(field);
      if (row.style != Style::kLoaded && !parse_layer(out)) return std::nullopt;
      return out;
    }
  }
  return std::nullopt;
}

std::string expert_tensor_name(const StyleRow& row, std::string_view module, int64_t expert,
                               std::string_view word, Field field) {
  const std::string_view suffix = row.suffixes[static_cast<size_t>(field)];
  if (row.stacked) return fmt::format("{}.{}{}", module, word, suffix);
  return fmt::format("{}.{}.{}{}", module, expert, word, suffix);
}

std::string experts_path(Style style, int64_t layer) {
  if (style == Style::kGptOssOriginal) return fmt::format("block.{}.mlp", layer);
  if (style == Style::kDeepseekV4) return fmt::format("layers.{}.ffn.experts", layer);
  return fmt::format("model.layers.{}.mlp.experts", layer);
}

std::string engine_path(Style style, int64_t layer) {
  if (style == Style::kGptOssOriginal) return fmt::format("model.layers.{}.mlp.experts", layer);
  if (style == Style::kDeepseekV4) return fmt::format("model.layers.{}.ffn.experts", layer);
  return {};
}

}  // namespace mxfp4
