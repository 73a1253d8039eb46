// The command `explain`: the oracle alone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/core/layer.hpp"
#include "lib/core/model_config.hpp"
#include "lib/oracle/resolve.hpp"

namespace mxfp4 {

struct ExplainOptions {
  std::string revision;  // empty: the default one
  std::string against;   // another one to compare with; empty: none
  std::string batch;     // JSON lines to answer, "-" for stdin; empty: one deployment
  bool verbose = false;  // batch: with traces
  bool json = false;
  DeploymentRequest request;       // flags, merged over the --target file
  std::optional<Family> family;    // --family
  std::optional<Backend> backend;  // --backend: the oracle is not asked
  bool round_sizes = true;         // --pad auto
  // What is known of a checkpoint; all empty without one.
  std::string checkpoint;    // as typed
  std::string style;         // --style
  std::string model_config;  // --model-config
  std::optional<ModelConfig> config;
  std::optional<LayerDims> dims;  // of the whole model
  std::optional<W13Order> order;
  std::optional<bool> biases;
  std::optional<bool> input_scales;
};

// Answers on stdout. Returns the exit code: 0, or 4 when the deployment is refused (the reference's
// message is then on stderr too). Throws Error.
int run_explain(const ExplainOptions& options);

// Answers JSON lines, one a line, in order; refusals are answers. Throws Error::input naming file
// and line for a line that is not a deployment.
int run_explain_batch(const ExplainOptions& options);

}  // namespace mxfp4
