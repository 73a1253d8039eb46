// A conversion's request as JSON text: what a consumer of the library says of its deployment. The
// members have the names of the command's flags, with underscores.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "formats/blob/manifest.hpp"
#include "formats/decision/conversion.hpp"
#include "formats/decision/opened_checkpoint.hpp"

namespace mxfp4 {

struct CheckpointRequest {
  ConversionRequest request;
  CheckpointOptions checkpoint;  // its path is not set
};

// Reads an object of these members, each of which may be absent or null, and no others:
//   engine, revision                             string
//   platform, arch, backend, family, selector    string; arch is any name of `list machines`
//   moe_backend, activation, routing_method      string
//   libs, no_lib                                 list of strings, "NAME" or in libs "NAME==VERSION"
//   env, knob                                    object of strings
//   quantization_config, target                  object
//   the facts of ParallelConfig and enable_lora  number, boolean or string (deployment_facts.cpp)
//   expert_placement                             "linear" | "round_robin"
//   pad                                          "auto" | "none" | "HxI"
//   rank                                         whole number
//   allow_known_defects, allow_unservable        boolean
//   style                                        string
//   model_config                                 object, in place of the checkpoint's config.json
//   layers                                       list of whole numbers
//   activation_override, weight_override         string: what quantization_config says of experts
//   cuda_compiler                                string
// Throws Error::usage naming the member.
[[nodiscard]] CheckpointRequest parse_checkpoint_request(std::string_view text);

// The request that made a blob, as these rules read it.
[[nodiscard]] CheckpointRequest request_of(const Manifest& rank, const RuleSet& rules);

// The members of such an object that say what was asked for, the engine's release, the rank and the
// layers aside. Reading them gives an equal request. Bytes that are not UTF-8 are replaced:
// check_text names them.
[[nodiscard]] std::string request_text(const ConversionRequest& request,
                                       std::optional<Style> style);

}  // namespace mxfp4
