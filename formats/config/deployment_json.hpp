// Deployments and decisions as JSON text: the lines of `explain --batch` and their answers, and the
// --target file.
#pragma once

#include <string>
#include <string_view>

#include "lib/core/deployment.hpp"
#include "lib/core/deployment_facts.hpp"

namespace mxfp4 {

// Reads one line of a batch, an object of these members and no others:
//   platform, arch, selector, moe_backend, activation, routing_method   string
//   libs                                         list of strings
//   env                                          object of strings
//   activation_override, model_activation        string or null
//   is_act_and_mul, lora                         boolean
//   parallel   object: the facts of ParallelConfig by their names in a batch
//              (lib/core/deployment_facts.cpp)
// May be absent or null:
//   num_experts, local_experts, hidden, intermediate   whole number
//   hash_routing                                       boolean
//   model_type                                         string
// Throws Error::input naming the key.
[[nodiscard]] Deployment parse_deployment(std::string_view text);

// Reads the facts of a serving machine, as scripts/probe-target prints them. Every member is
// optional; members not listed here are refused:
//   vllm       version of the engine, a string
//   platform   "cuda" | "rocm" | "xpu" | "cpu" | "other"
//   arch       "sm90", "gfx950", "x86_64", ...
//   libs       list of kernel package names, or object name -> version (a string, or null)
//   env        object name -> value, both strings: the environment of the serving process
// Throws Error::input naming the key.
[[nodiscard]] DeploymentFacts parse_target(std::string_view text);

// {"backend": .., "experts_class": ..} or {"error": .., "message": ..}; with `trace` also
// "trace": [[class, key|null, supported, reason|null], ...]. One line, ASCII only; bytes that are
// not UTF-8 become U+FFFD.
[[nodiscard]] std::string decision_json(const Decision& decision, bool trace);

}  // namespace mxfp4
