// Deployments and decisions as JSON text: the lines of `explain --batch`, the --target file, and
// the answer of `explain --json`.
#pragma once

#include <string>
#include <string_view>

#include "lib/core/deployment.hpp"
#include "lib/oracle/resolve.hpp"

namespace mxfp4 {

// One line of a batch: every member of the table below, no other; num_experts may be absent.
//   platform, arch, selector, moe_backend, activation, routing_method   string
//   libs                                         list of strings
//   env                                          object of strings
//   activation_override, model_activation        string or null
//   is_act_and_mul, lora                         boolean
//   num_experts                                  whole number
//   parallel   object: tp, pcp, dp whole numbers; enable_expert_parallel, enable_eplb,
//              sequence_parallel booleans; all2all_backend string
// Throws Error::input naming the key.
[[nodiscard]] Deployment parse_deployment(std::string_view text);

// The facts of a serving machine, as scripts/probe-target prints them. Every member is optional,
// any other is refused:
//   platform   "cuda" | "rocm" | "xpu" | "cpu" | "other"
//   arch       "sm90", "gfx950", "x86_64", ...
//   libs       list of kernel package names, or object name -> version (a string, or null)
//   env        object name -> value, both strings: the environment of the serving process
// Throws Error::input naming the key.
[[nodiscard]] DeploymentFacts parse_target(std::string_view text);

// {"backend": .., "experts_class": ..} or {"error": .., "message": ..}; with `trace` also
// "trace": [[class, key|null, supported, reason|null], ...]. One line, ASCII only; bytes that are not
// UTF-8 become U+FFFD.
[[nodiscard]] std::string decision_json(const Decision& decision, bool trace);

}  // namespace mxfp4
