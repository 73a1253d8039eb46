// A conversion's request as JSON: what the command's flags, a manifest's `asked` and a consumer of the
// library say of a deployment. The members have the names of the flags, with underscores.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "formats/blob/manifest.hpp"
#include "formats/decision/conversion.hpp"
#include "formats/decision/open_checkpoint.hpp"

namespace mxfp4 {

struct CheckpointRequest {
  ConversionRequest request;
  CheckpointOptions checkpoint;  // its path is not set
};

// "--knob tp_size": the number of serving ranks, for an input that is one rank's already. It is not
// a knob of a layout.
inline constexpr const char* kWorldKnob = "tp_size";
// The item of libs that means no package.
inline constexpr const char* kNoLibs = "none";

// Reads an object of these members, each of which may be absent or null, and no others:
//   engine, revision                             string
//   platform, arch, backend, family, selector    string; arch is any name of `list machines`
//   moe_backend, activation, routing_method      string
//   libs, no_lib                                 list of strings, "NAME" or in libs "NAME==VERSION",
//                                                or one string with commas
//   env, knob                                    object of strings, or list of "NAME=VALUE"
//   quantization_config                          object, or its text, or a file's name
//   target                                       object
//   the facts of ParallelConfig and enable_lora  number, boolean or string (deployment_facts.cpp)
//   expert_placement                             "linear" | "round_robin"
//   pad                                          "auto" | "none" | "HxI"
//   rank                                         whole number
//   allow_known_defects, allow_unservable        boolean
//   style                                        string
//   model_config                                 object, in place of the checkpoint's config.json
//   layers                                       list of whole numbers, or "0-3,7"
//   activation_override, weight_override         string: what quantization_config says of experts
//   cuda_compiler                                string
// Throws Error::usage naming the member.
[[nodiscard]] CheckpointRequest parse_checkpoint_request(std::string_view text);

// The same of an object that was parsed. Facts that it leaves open are `target`'s, which is its member
// of this name as parse_target reads it, then those that `blob` was made for; null: no blob. Errors
// have the member as their key.
[[nodiscard]] CheckpointRequest read_request(const nlohmann::json& object,
                                             const DeploymentFacts& target, const RuleSet& rules,
                                             const Manifest* blob = nullptr);

// The name of the release that serves: the object's, else the target's, else the blob's, else the
// newest, of the engine that the object names.
[[nodiscard]] std::string release_asked(const nlohmann::json& object, const DeploymentFacts& target,
                                        const Manifest* blob = nullptr);

// The release that an engine and a name mean together: "0.5.23" of "sglang" is "sglang-0.5.23". Either
// may be empty. Throws Error::usage if they contradict each other.
[[nodiscard]] std::string release_named(const std::string& engine, const std::string& name);

// The request that made a blob, as these rules read it.
[[nodiscard]] CheckpointRequest request_of(const Manifest& rank, const RuleSet& rules);

// The members of such an object that say what was asked for, the engine's release, the rank and the
// layers aside. Reading them gives an equal request. Bytes that are not UTF-8 are replaced:
// check_text names them.
[[nodiscard]] std::string request_text(const ConversionRequest& request,
                                       std::optional<Style> style);

}  // namespace mxfp4
