// From flags to the request of a conversion. Names in flags are looked up here, so that a wrong
// one is answered with the nearest; formats/conversion/ decides what follows from them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "apps/options.hpp"
#include "formats/conversion/decide.hpp"
#include "formats/conversion/working_sizes.hpp"

namespace mxfp4 {

// The rules that --revision names; else those of the vLLM that --target says is installed, else
// default_revision(). Throws Error::usage for a release that is not known.
[[nodiscard]] const RuleSet& rules_for(const RequestFlags& flags);

// The request that the flags and the --target file make. Throws Error::usage and Error::input
// naming the flag or the file.
[[nodiscard]] ConversionRequest request_from(const RequestFlags& flags);
// The same by another rule set than that of --revision.
[[nodiscard]] ConversionRequest request_from(const RequestFlags& flags, const RuleSet& rules);

// The checkpoint to open, and which of its layers. `family` is the request's.
[[nodiscard]] CheckpointOptions checkpoint_from(const InputOptions& options,
                                                std::optional<Family> family);

// A conversion, and the parallel sizes that work where the asked ones are what is refused.
struct DecidedConversion : Conversion {
  WorkingSizes working{};
};

// decide_conversion, with errors that name the flag or the --target file that is wrong. A refusal
// gets a hint: one of sizes names those that work.
[[nodiscard]] DecidedConversion conversion_for(const RequestFlags& flags,
                                               const ConversionRequest& request,
                                               const OpenedCheckpoint* checkpoint);

// "--tp-size"
[[nodiscard]] std::string_view flag_of(ParallelSize size);

}  // namespace mxfp4
