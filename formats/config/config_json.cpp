#include "formats/config/config_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "formats/config/config_fields.hpp"
#include "formats/config/quantization_rules.hpp"
#include "formats/json/packed_config.hpp"
#include "formats/json/python_json.hpp"
#include "formats/json/strict_json.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"
#include "lib/load/style_rows.hpp"
#include "lib/oracle/model_classes.hpp"

namespace mxfp4 {
namespace {

using Json = nlohmann::ordered_json;

// The keys under which models state a size, in the order of preference.
constexpr std::array<std::string_view, 4> kExperts = {"num_local_experts", "n_routed_experts",
                                                      "num_experts", "moe_num_experts"};
// Kimi-K3's routed experts lie between two latent projections.
constexpr std::array<std::string_view, 3> kHidden = {"routed_expert_hidden_size", "hidden_size",
                                                     "d_model"};
constexpr std::array<std::string_view, 5> kIntermediate = {
    "moe_intermediate_size", "expert_intermediate_size", "expert_ffn_hidden_size",
    "expert_hidden_dim", "intermediate_size"};
constexpr std::array<std::string_view, 3> kLayerCount = {"num_hidden_layers", "num_layers",
                                                         "n_layers"};
// vLLM 0.33.0, config/speculative.py: each model class asks for one of these.
constexpr std::array<std::string_view, 4> kDraftLayers = {
    "num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules", "num_mtp_layers"};
constexpr std::array<std::string_view, 7> kTopK = {"num_experts_per_tok",
                                                   "experts_per_token",
                                                   "num_experts_per_token",
                                                   "top_k_experts",
                                                   "moe_topk",
                                                   "moe_top_k",
                                                   "moe_k"};
constexpr std::array<std::string_view, 2> kDraftExperts = {"dspark_n_routed_experts",
                                                           "mtp_num_experts"};

// The size under the first of `keys` that is there; sets `used` to that key.
template <size_t N>
std::optional<int64_t> first_size(const ConfigFields& fields,
                                  const std::array<std::string_view, N>& keys, std::string& used) {
  for (const std::string_view key : keys) {
    if (fields.find(key) == nullptr) continue;
    used = key;
    return fields.size(key);  // empty for a list of several sizes: the next key states another one
  }
  return std::nullopt;
}

// Some models state the one shared expert by its size only.
int64_t shared_experts(const ConfigFields& fields) {
  const int64_t size = fields.size("shared_expert_intermediate_size").value_or(0);
  for (const std::string_view key : {"n_shared_experts", "num_shared_experts"}) {
    if (const auto number = fields.size(key)) return *number;
  }
  return size > 0 ? 1 : 0;
}

std::vector<std::string> architectures_of(const Json& root) {
  std::vector<std::string> names;
  const auto found = root.find("architectures");
  if (found == root.end() || !found->is_array()) return names;
  for (const Json& name : *found) {
    if (name.is_string()) names.push_back(name.get<std::string>());
  }
  return names;
}

// The first of `architectures`; empty if there is none.
std::string architecture_of(const Json& root) {
  const std::vector<std::string> names = architectures_of(root);
  return names.empty() ? "" : names.front();
}

std::string stated_activation(const ConfigFields& fields) {
  std::string text = fields.text("hidden_act");
  return text.empty() ? fields.text("hidden_activation") : text;
}

// The class that makes the experts, and its name. An outer class that makes none asks the text
// model's own, as the engine does (vLLM 0.33.0, models/utils.py, init_vllm_registered_model).
struct ExpertsClass {
  std::string name;
  const ModelClass* row;  // null: not known
};
ExpertsClass experts_class(const ConfigFields& fields) {
  ExpertsClass outer{architecture_of(fields.root()),
                     find_model_class(architecture_of(fields.root()))};
  if (outer.row != nullptr || fields.nested() == nullptr) return outer;
  const std::string inner = architecture_of(*fields.nested());
  const ModelClass* row = find_model_class(inner);
  return row == nullptr ? outer : ExpertsClass{inner, row};
}

// The model's class decides; the config, where the class asks it or is not known.
std::string experts_activation(const ConfigFields& fields) {
  const ModelClass* row = experts_class(fields).row;
  if (row == nullptr || row->activation.empty()) return stated_activation(fields);
  return std::string(row->activation);
}

// The layers that have a limit above 0: those run another activation.
std::vector<int64_t> limited_layers(const ConfigFields& fields) {
  std::vector<int64_t> layers;
  const Json* limits = fields.find("swiglu_limits");
  if (limits == nullptr || !limits->is_array()) return layers;
  for (size_t i = 0; i < limits->size(); ++i) {
    const Json& limit = (*limits)[i];
    if (limit.is_number() && limit.get<double>() != 0) layers.push_back(static_cast<int64_t>(i));
  }
  return layers;
}

// The layers whose entry in mlp_layer_types is another than "dense": "sparse", "moe" or "hash_moe".
std::optional<std::vector<int64_t>> typed_moe_layers(const ConfigFields& fields) {
  const Json* types = fields.find("mlp_layer_types");
  if (types == nullptr || !types->is_array()) return std::nullopt;
  std::vector<int64_t> layers;
  const auto count = static_cast<int64_t>(types->size());
  const int64_t end = std::min(count, fields.size("num_hidden_layers").value_or(count));
  for (int64_t i = 0; i < end; ++i) {
    if ((*types)[static_cast<size_t>(i)] != "dense") layers.push_back(i);
  }
  return layers;
}

// DeepSeek-V4's layers whose router looks up the token: their number, or one by one.
std::optional<int64_t> hash_layers(const ConfigFields& fields) {
  const Json* types = fields.find("mlp_layer_types");
  if (auto number = fields.size("num_hash_layers")) return number;
  if (types == nullptr || !types->is_array()) return std::nullopt;
  return std::count(types->begin(), types->end(), "hash_moe");
}

// The layers of a list, of its text "3,4,5", of a flag for each layer, or of a pattern whose letter
// E is a layer of experts.
std::optional<std::vector<int64_t>> stated_moe_layers(const ConfigFields& fields) {
  if (auto typed = typed_moe_layers(fields)) return typed;
  std::vector<int64_t> layers;
  if (const Json* list = fields.find("moe_layers"); list != nullptr && list->is_array()) {
    for (const Json& layer : *list) layers.push_back(ConfigFields::to_size(layer, "moe_layers"));
    return layers;
  }
  if (const std::string text = fields.text("moe_layers_enum"); !text.empty()) {
    for (size_t at = 0; at <= text.size();) {
      const size_t end = std::min(text.find(',', at), text.size());
      if (const auto layer = parse_index(std::string_view(text).substr(at, end - at))) {
        layers.push_back(*layer);
      }
      at = end + 1;
    }
    return layers;
  }
  if (const Json* flags = fields.find("moe_layer_freq"); flags != nullptr && flags->is_array()) {
    for (size_t i = 0; i < flags->size(); ++i) {
      if ((*flags)[i] == 1) layers.push_back(static_cast<int64_t>(i));
    }
    return layers;
  }
  if (const std::string pattern = fields.text("hybrid_override_pattern"); !pattern.empty()) {
    for (size_t i = 0; i < pattern.size(); ++i) {
      if (pattern[i] == 'E') layers.push_back(static_cast<int64_t>(i));
    }
    return layers;
  }
  return std::nullopt;
}

// The same where the config counts: from `first` to `last`, every `step`-th one.
std::optional<std::vector<int64_t>> listed_moe_layers(const ConfigFields& fields,
                                                      std::optional<int64_t> count) {
  if (auto stated = stated_moe_layers(fields)) return stated;
  constexpr int64_t kMost = 1 << 12;
  if (!count || *count > kMost) return std::nullopt;
  int64_t first = 0;
  int64_t last = *count - 1;
  int64_t step = 1;
  if (const auto period = fields.size("expert_layer_period")) {  // Jamba
    step = *period;
    first = fields.size("expert_layer_offset").value_or(0);
  } else if (const auto interleaved = fields.size("interleave_moe_layer_step")) {  // Llama 4
    step = *interleaved;
    first = step - 1;
  } else if (const auto interval = fields.size("moe_layer_interval")) {  // ERNIE
    step = *interval;
    first = fields.size("moe_layer_start_index").value_or(0);
    last = std::min(last, fields.size("moe_layer_end_index").value_or(last));
    if (step > 0) first = (first + step) / step * step - 1;  // those whose next number it divides
  } else {
    return std::nullopt;
  }
  std::vector<int64_t> layers;
  for (int64_t layer = first; step > 0 && layer <= last; layer += step) layers.push_back(layer);
  return layers;
}

// A number of heads. Configs whose layers differ have a list there, from which nothing is taken.
std::optional<int64_t> read_heads(const ConfigFields& fields, const char* key) {
  const Json* value = fields.find(key);
  if (value == nullptr || !value->is_number_integer()) return std::nullopt;
  return fields.size(key);
}

// Whether the model's type is float16: the outer object's word counts before the text model's.
bool is_half(const ConfigFields& fields) {
  for (const Json* level : {&fields.root(), fields.nested()}) {
    if (level == nullptr) continue;
    for (const char* key : {"dtype", "torch_dtype"}) {
      const auto found = level->find(key);
      if (found != level->end() && found->is_string()) return *found == "float16";
    }
  }
  return false;
}

// fused_moe/expert_substitution.py (vLLM 0.33.0), get_expert_substitution_spec.
bool replaces_experts(const ConfigFields& fields) {
  static const Json::json_pointer kDeclared(
      "/compression_config/transform_config/expert_substitution");
  const Json* approximate = fields.find("approximate_experts");
  return approximate != nullptr ? !approximate->empty() : fields.root().contains(kDeclared);
}

void read_fields(const ConfigFields& fields, ModelConfig& config) {
  config.hidden_size = first_size(fields, kHidden, config.hidden_size_key);
  config.intermediate_size = first_size(fields, kIntermediate, config.intermediate_size_key);
  config.num_experts = first_size(fields, kExperts, config.num_experts_key);
  config.draft_experts = first_size(fields, kDraftExperts, config.draft_experts_key);
  if (config.draft_experts == 0) config.draft_experts.reset();  // as the rest
  config.least_slice = fields.size("min_moe_intermediate_per_partition");
  std::string ignored;
  config.num_hidden_layers = first_size(fields, kLayerCount, ignored);
  config.num_attention_heads = read_heads(fields, "num_attention_heads");
  if (fields.find("kv_lora_rank") == nullptr) {
    config.num_key_value_heads = read_heads(fields, "num_key_value_heads");
    const auto groups = read_heads(fields, "num_attention_groups");  // Step 3.5
    if (!config.num_key_value_heads) config.num_key_value_heads = groups;
  }
  config.num_nextn_predict_layers = first_size(fields, kDraftLayers, ignored);
  const bool own_experts = config.draft_experts && fields.size("dspark_n_routed_experts");
  if (fields.find("dspark_block_size") != nullptr || own_experts) {
    config.draft_stages = fields.size("n_mtp_layers").value_or(3);
  }
  config.first_k_dense_replace = fields.size("first_k_dense_replace");
  if (!config.first_k_dense_replace) config.first_k_dense_replace = fields.size("dense_mlp_idx");
  config.moe_layer_freq = fields.size("moe_layer_freq");
  config.decoder_sparse_step = fields.size("decoder_sparse_step");
  if (const Json* only = fields.find("mlp_only_layers"); only != nullptr && only->is_array()) {
    for (const Json& layer : *only) {
      config.mlp_only_layers.push_back(ConfigFields::to_size(layer, "mlp_only_layers"));
    }
  }
  config.moe_layers = listed_moe_layers(fields, config.num_hidden_layers);
  config.ungated_experts = fields.find("mlp_hidden_act") != nullptr;
  config.num_experts_per_tok = first_size(fields, kTopK, ignored);
  config.num_shared_experts = shared_experts(fields);
  config.n_group = fields.size("n_group");
  config.num_hash_layers = hash_layers(fields);
  config.norm_topk_prob = fields.truth("norm_topk_prob");
  config.use_grouped_topk = fields.truth("use_grouped_topk");
  config.num_expert_group = fields.size("num_expert_group");
  config.topk_group = fields.size("topk_group");
  if (const Json* factor = fields.find("routed_scaling_factor");
      factor != nullptr && factor->is_number()) {
    config.routed_scaling_factor = factor->get<double>();
  }
  config.hidden_act = experts_activation(fields);
  config.latent_experts = fields.find("routed_expert_hidden_size") != nullptr;
  config.half_precision = is_half(fields);
  config.replaced_experts = replaces_experts(fields);
  config.situ_linear_beta = fields.find("activation_situ_linear_beta") != nullptr;
  config.scoring_func = fields.text("scoring_func");
  config.topk_method = fields.text("topk_method");
}

// The model_type of the outer object: of a model inside a wrapper, that is the wrapper's.
std::string read_model_type(const Json& root, const ConfigFields& fields) {
  const auto found = root.find("model_type");
  if (found != root.end() && found->is_string()) return found->get<std::string>();
  return fields.text("model_type");
}

ModelConfig read(std::string_view text) {
  Json root = parse_python_config(text);
  if (!root.is_object()) {
    throw Error::input(fmt::format("expected a JSON object, found {}", root.type_name()));
  }
  restore_quantization(root);
  ModelConfig config;
  if (root.contains("quant_method")) {
    config.quantization_only = true;
    config.quantization = read_quantization({&root, nullptr, {}, "quantization_config"});
    return config;
  }
  const ConfigFields fields(root);
  read_fields(fields, config);
  config.model_type = read_model_type(root, fields);
  config.architectures = architectures_of(root);
  config.original_gpt_oss =
      config.model_type.empty() && root.contains("num_experts") && root.contains("rope_ntk_alpha");
  std::string where;
  if (const Json* quantization = find_quantization(root, where)) {
    config.quantization = read_quantization({quantization, &root, config.model_type, where});
  }
  return config;
}

}  // namespace

std::vector<std::string> model_class_warnings(std::string_view text) {
  const Json root = parse_python_config(text);
  if (!root.is_object() || root.contains("quant_method")) return {};
  const ConfigFields fields(root);
  const auto [architecture, row] = experts_class(fields);
  if (architecture.empty()) return {};
  if (row == nullptr) {
    const std::string activation = stated_activation(fields);
    return {
        fmt::format("{}: a model class that this program does not know; its experts are taken to "
                    "run {}, {}",
                    shown(architecture), activation.empty() ? "silu" : shown(activation),
                    activation.empty() ? "the engine's default" : "as the config says")};
  }
  const std::vector<int64_t> limited = limited_layers(fields);
  if (!row->by_layer || limited.empty()) return {};
  return {
      fmt::format("{} runs swiglustep in layers {} and silu in the others, for which this is "
                  "decided; convert those layers apart, with --layers and --activation swiglustep",
                  shown(architecture), number_ranges(limited))};
}

ModelConfig parse_model_config(std::string_view text, std::string_view file) {
  ModelConfig config = in_file(file, [&] { return read(text); });
  config.file = file;
  return config;
}

}  // namespace mxfp4
