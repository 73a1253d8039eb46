// Inputs that already hold vLLM's loaded layout: `<prefix>.w13_weight` and so on, one prefix a
// layer (shapes in lib/core/layer.hpp). The layer's number is the first integer of its prefix;
// prefixes without one count up from 0.
//
// The container's attributes may state `family`, `w13_order`, `bias_dtype` ("BF16" or "F32"),
// `scale_fill` (a byte), `num_experts`, `hidden_size`, `intermediate_size`, and `tp_size`,
// `ep_size` of an input that is one rank's already. FindOptions::origin says whose tensors they
// are; then the rules of that style and loader hold, as for the checkpoint.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/load/expert_layer.hpp"

namespace mxfp4 {

// Whether any name is of this form.
[[nodiscard]] bool has_loaded_names(const std::vector<NamedTensor>& tensors);

// The attributes that decide how a file's tensors are read, by name: those that it states, and the
// default of one that it leaves out, where its tensors depend on it. Files of one input agree on
// attributes that both have.
[[nodiscard]] std::map<std::string, std::string> binding_attributes(
    const std::map<std::string, std::string>& attributes,
    const std::vector<std::string_view>& names);

// The same as find_expert_layers, for a `loaded` input. Throws Error::usage when nothing says the
// family.
[[nodiscard]] ModelLayers find_loaded_layers(const std::vector<NamedTensor>& tensors,
                                             const ModelConfig* config, const FindOptions& options);

}  // namespace mxfp4
