// Makes the request of a conversion from flags. Looks up names in flags, and answers a wrong one
// with the nearest; formats/conversion/ decides what follows from them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "apps/options.hpp"
#include "formats/blob/manifest.hpp"
#include "formats/decision/decide.hpp"

namespace mxfp4 {

// In what follows `blob` is the input, if that is a blob: what neither flags nor the --target file
// say is as it was made for.

// The rules of release_asked(). Throws Error::usage for a release that is not known.
[[nodiscard]] const RuleSet& rules_for(const RequestFlags& flags,
                                       const std::optional<Manifest>& blob);

// The request that the flags, the --target file and the blob make. Throws Error::usage and Error::input
// naming the flag or the file.
[[nodiscard]] ConversionRequest request_from(const RequestFlags& flags, const RuleSet& rules,
                                             const std::optional<Manifest>& blob);

// The facts of the deployment that the flags and the --target file give, with names looked up by
// `rules`. Throws as request_from does.
[[nodiscard]] DeploymentFacts deployment_from(const RequestFlags& flags, const RuleSet& rules);

// The checkpoint to open, and which of its layers. `family` is the request's.
[[nodiscard]] CheckpointOptions checkpoint_from(const InputOptions& options,
                                                std::optional<Family> family);

// Throws Error::usage if OUT is an address.
void require_local(const std::filesystem::path& out);

// The hint of a deployment that no backend serves.
inline constexpr const char* kExplainHint =
    "mxfp4-repack explain shows every candidate and its reason";

// Calls decide_conversion. Errors name the flag or the --target file that is wrong; a refusal of the
// oracle gets a hint.
[[nodiscard]] Conversion conversion_for(const RequestFlags& flags, const ConversionRequest& request,
                                        const OpenedCheckpoint* checkpoint);

}  // namespace mxfp4
