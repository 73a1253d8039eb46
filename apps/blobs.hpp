// The first and the last steps of commands that take a blob.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/commands.hpp"
#include "apps/console.hpp"
#include "formats/decision/fits.hpp"
#include "formats/output/given_path.hpp"

namespace mxfp4 {

// What to do about files of a blob that are missing or damaged.
inline constexpr const char* kMendBlob =
    "convert again, with the same flags and --resume --check; or fetch those files again";

// Warns if ranks of the blob at `path` are missing. `manifests`: of the ranks that are there.
void warn_of_missing_ranks(const std::filesystem::path& path,
                           const std::vector<Manifest>& manifests, const Console& console);

// How the checkpoint at `path` differs from the one that the blob in its folder was made from, in
// words. Empty if it does not, and for a `path` that is a blob, or around whose blob lie no experts.
[[nodiscard]] std::optional<std::string> other_checkpoint(const std::filesystem::path& path,
                                                          const Manifest& manifest);

// What the flags and the --target file ask of a blob; `blob` is the manifest of one rank, whose release is
// taken if they name none. Throws Error::usage and Error::input naming the flag or the file.
[[nodiscard]] FitQuestion fit_question(const RequestFlags& flags, const Manifest& blob);
// kOk, kDifference or kNotKnown.
[[nodiscard]] ExitCode exit_code_of(Fit fit);

// Prints what a check of the blob at `path` found.
void print_findings(const std::filesystem::path& path, const std::vector<std::string>& findings,
                    const Console& console);

}  // namespace mxfp4
