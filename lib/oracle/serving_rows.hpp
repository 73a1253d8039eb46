// Rows of a revision that decide how a checkpoint is served with the backend that was chosen: the
// engine's method class, its converter and loader, the kernel's settings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lib/core/backend.hpp"
#include "lib/core/deployment.hpp"
#include "lib/core/layer.hpp"
#include "lib/oracle/condition.hpp"
#include "lib/oracle/selection_rows.hpp"

namespace mxfp4 {

struct ModelConfig;

// A backend that a family's converter takes or, when not supported, refuses.
struct ConverterRow {
  Backend backend;
  Family family;
  bool supported = true;
  bool needs_biases = false;
  bool needs_input_scales = false;
};

struct CallerRow;
// The facts that a note about loading a checkpoint depends on.
struct LoadFacts {
  const Question& question;
  const Decision& decision;
  const CallerRow* caller;  // null: no checkpoint
  Family family;
  const ConverterRow* converter;  // null: none for that pair
  std::optional<bool> biases;     // empty: not known
  std::optional<bool> input_scales;
};

struct LoadNoteRow {
  std::string_view name;  // for releases that change the row
  bool (*holds)(const LoadFacts&);
  // Filled by fill_text and with {value}, {family}, {method}, {minimum_capability}, {first_class},
  // {attention_heads}, {kv_heads}, {tp_size}.
  std::string_view text;
  std::string_view fixed_in;
  bool stops = false;  // the engine does not serve: it ends at its start or while it loads
};

// Selection by the method class itself: first match wins.
struct DirectRow {
  Condition when;
  std::optional<Backend> backend;  // empty: it refuses, or asks the oracle
  std::string_view experts_class;
  std::string_view note;
  // A knob that the layout then has, where the method converts otherwise than the
  // oracle's converter.
  std::string_view knob{}, knob_value{};
  bool asks_oracle = false;  // here it does, with the oracle's selector
  Refusal refusal{};         // where there is no backend; empty: no layout is known
  // The engine asks the class afterwards, with this activation key (empty: none), whether it
  // supports the deployment, and stops where it does not.
  std::optional<std::string_view> asked_key{};
};

// A model whose shared experts become the last slots of every rank's stack under a condition.
struct FusedSharedRow {
  std::vector<std::string_view> model_types;
  Condition when;
  bool if_mxfp4 = true;  // only where the checkpoint holds them as MXFP4, too
  // The engine stops with these words, whatever the checkpoint holds; empty: it fuses them.
  std::string_view stops{};
};

// The engine's method class that serves a checkpoint, and its requests; first match wins.
struct CallerRow {
  std::string_view text;  // the condition in words
  bool (*holds)(const ModelConfig&);
  std::string_view method;  // "GptOssMxfp4MoEMethod"
  Selector selector = Selector::kGptOss;
  Family family = Family::kGptOss;
  std::string_view model_activation{};  // the checkpoint's own key; empty: none
  // The type of activations that the method passes to the converter for the checkpoint;
  // empty: none.
  std::string_view input_dtype{};
  std::vector<DirectRow> direct{};        // not empty: the oracle is not asked
  std::vector<DirectRow> exceptions{};    // the oracle is asked where none of these holds
  bool rounds = true;                     // sizes are rounded
  std::optional<Backend> never_rounds{};  // but not for this backend
  std::optional<std::byte> scale_fill{};  // padding of scales; empty: the style's usual one
  bool first_class_only = false;          // the backend's first class replaces the chosen one
  Condition replaced_when{};              // `replacement` runs in place of what the oracle chose
  Backend replacement = Backend::NONE;
  bool gives_layer = true;     // the converter gets permute cache and layer
  int minimum_capability = 0;  // on CUDA, major * 10 + minor
  std::string_view note{};     // about any checkpoint of this kind
  std::string_view note_fixed_in{};
};

// What the engine calls a parameter that a blob calls otherwise.
struct ParameterNameRow {
  std::string_view method;          // of this caller
  std::optional<Backend> except{};  // but not with this backend
  std::string_view in_blob, in_engine;
};

// A knob that the method class decides where it is known: `usual`, unless a DirectRow
// says otherwise.
struct MethodKnobRow {
  std::string_view knob, usual;
};

// What a knob calls the activations of a key.
struct KeyTypeRow {
  std::string_view key, type;
};

// What a converter takes for a checkpoint's key, where the user states none.
struct TakenTypeRow {
  std::string_view key;   // CallerRow::model_activation
  std::string_view text;  // the condition in words
  bool (*holds)(const Target&);
  std::string_view type;  // the knob's value
};

// What tells a converter the type of activations for which it packs; BF16 where nothing does.
struct InputDtypeRow {
  Backend backend;
  Family family;
  std::string_view knob;      // this program's, for the same type
  std::string_view variable;  // of the serving process; where it is set, nothing else counts
  bool checkpoint = false;    // CallerRow::input_dtype counts
  bool override = false;      // quantization_config.moe.activation counts
  std::span<const KeyTypeRow> types{};    // the knob's value for the override; others by their keys
  std::span<const TakenTypeRow> taken{};  // in place of CallerRow::input_dtype; first match wins
};

// The fewest rows of the intermediate dimension that a model's own class gives a tensor-parallel
// rank, before they are rounded; first match wins.
struct LeastSliceRow {
  std::string_view text;  // the condition in words
  bool (*holds)(const ModelConfig&);
  std::optional<Platform> platform{};  // empty: any
  int64_t rows = 0;                    // unless the config says another number
  bool with_expert_parallel = false;   // the rule holds with expert parallelism, too
};

// A kernel library whose version a revision asks for.
struct LibraryPin {
  std::string_view library;  // the distribution's name: "flashinfer", "humming-kernels"
  std::string_view version;
  std::optional<Platform> platform{};  // empty: on every platform
};

// The packages that a platform has installed by default.
struct StockRow {
  Platform platform;
  std::vector<std::string_view> packages;
};

// How the engine's generic loader treats experts. The gpt-oss loaders are the same in every
// revision.
struct LoaderRules {
  bool strides_by_checkpoint =
      false;  // ranks begin at multiples of I / tp, not of their padded size
  // gpt-oss needs an I that all ranks divide, experts' too (fused_moe/layer.py); false: only those of
  // tensor parallelism.
  bool divides_by_all_ranks = true;
  bool loads_biases = false;    // where a checkpoint has them; false: they stay unread
  bool encodes_scales = false;  // the MXFP4 method makes E8M0 of scales that are floats
  // The gpt-oss method gives other models biases of zeros. Releases ask the model for has_bias
  // first (quantization/mxfp4.py, create_weights), which only gpt-oss has.
  bool creates_biases = true;
};

}  // namespace mxfp4
