// Which of a config's rules for modules holds for a layer's experts. Patterns come from files: a
// regular expression is matched in polynomial time, and one that could grow large is not matched.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/core/model_config.hpp"

namespace mxfp4 {

// The rule that a quantization config has for the experts `module`, one of whose tensors belongs to
// the module `linear`; null when it has none. Names are the checkpoint's. Where compressed-tensors
// has no rule, one that names the projection in other words is taken, w1 for gate_proj: releases ask
// for either.
[[nodiscard]] const ModuleQuantization* find_rule(const Quantization& quantization,
                                                  std::string_view module,
                                                  const std::string& linear);

// A module's name as the engine has it: as the model's class renames it, with the engine's name of
// the block of its experts.
[[nodiscard]] std::string engine_name(const Quantization& quantization, std::string name);
// The same, but the block keeps its own name.
[[nodiscard]] std::string renamed(std::span<const Rename> renames, std::string name);

// Shell-style match of a whole name: '*', '?' and [...] sets, as Python's fnmatch.
[[nodiscard]] bool glob_match(const std::string& pattern, const std::string& name);

// Whether a regular expression can be matched: not too long, without many repetitions by number,
// and of the signs that Python and ECMAScript share.
[[nodiscard]] bool regex_readable(const std::string& pattern);

// Whether a regular expression of Python's matches a beginning of the name. False for one that is
// not readable.
[[nodiscard]] bool regex_match_start(const std::string& pattern, const std::string& name);

// Whether a layer's routed experts are left out of the quantization; `module` and `linear`
// as above.
[[nodiscard]] bool is_excluded(const Quantization& quantization, int64_t layer,
                               std::string_view module, const std::string& linear);

}  // namespace mxfp4
