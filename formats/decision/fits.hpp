// Answers "does it still fit?": whether an engine of some release, on some machine, would read a
// blob as it is. The first fact that differs is the first reason.
//
// Usage:
//   const Fits answer = fits({.rules = &rules, .release = "vllm-0.33.0"}, manifests);
//   if (answer.fit == Fit::kNo) print(answer.reasons.front());
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/blob/manifest.hpp"
#include "lib/core/deployment_facts.hpp"
#include "lib/oracle/rule_set.hpp"

namespace mxfp4 {

struct BlobRanks;  // given_path.hpp

struct FitQuestion {
  const RuleSet* rules = nullptr;  // of the release that serves, never null
  std::string release{};  // its name; another than the rules' if it is newer than all known ones
  DeploymentFacts
      facts{};  // of the serving machine and process; what is empty is as the blob has it
};

enum class Fit : uint8_t {
  kYes,
  kNo,
  kNotKnown,  // the plug-in proves it when the engine starts
};

struct Fits {
  Fit fit = Fit::kYes;
  std::vector<std::string> differs{};  // facts that are not as the blob was made for, as flags
  std::vector<std::string> reasons{};  // why it does not fit, or why that is not known
  bool takes_backend = true;           // false: the engine does not take the blob's backend there
  bool damaged = false;                // a layer file is missing, or of another size
};

// `ranks` are the manifests of all ranks at hand. Facts of a machine that this program does not
// know are Error::usage, as in every command.
[[nodiscard]] Fits fits(const FitQuestion& question, const std::vector<Manifest>& ranks);

// The same of a blob on disk: one without all of its layer files, or with one of another size, fits
// nothing.
[[nodiscard]] Fits fits(const FitQuestion& question, const BlobRanks& blob);

// "4 ranks there, this blob is of 2 ranks"; empty if the sizes part the model as the blob's do.
[[nodiscard]] std::string other_world(const Manifest& rank, const ParallelConfig& parallel);

// The --moe-backend with which the engine that the blob was made for takes it, "auto" where it needs
// none. Empty: under no name, or the blob stops at the loaded layout, which no engine reads.
[[nodiscard]] std::optional<std::string> moe_backend_for(const Manifest& rank);

}  // namespace mxfp4
