// The question and the answer of "does it still fit?", which fits and inspect share.
#pragma once

#include <string>

#include "apps/commands.hpp"
#include "apps/options.hpp"
#include "formats/decision/fits.hpp"

namespace mxfp4 {

// What the flags and the --target file ask; `blob` is the manifest of one rank, whose release is
// taken if they name none. Throws Error::usage and Error::input naming the
// flag or the file.
[[nodiscard]] FitQuestion fit_question(const RequestFlags& flags, const Manifest& blob);

// kOk, kDifference or kNotKnown.
[[nodiscard]] ExitCode exit_code_of(Fit fit);

// "yes, it fits vllm-0.33.0"
[[nodiscard]] std::string fit_words(Fit fit, const std::string& release);

}  // namespace mxfp4
