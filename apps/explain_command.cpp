// The command explain: flags and a checkpoint to the question that run_explain answers.
#include "apps/commands.hpp"
#include "apps/explain.hpp"
#include "apps/session.hpp"

namespace mxfp4 {

int explain_command(const ExplainFlags& flags, const Console& console) {
  ExplainOptions options;
  options.revision = flags.deployment.revision;
  options.against = flags.against;
  options.batch = flags.batch;
  options.verbose = console.verbose() > 0;
  options.json = console.json();
  if (!options.batch.empty()) return run_explain(options);
  options.request = request_from(flags.deployment, rules_for(flags.deployment));
  options.backend = forced_backend(flags.deployment);
  options.family = family_flag(flags.deployment.family);
  options.round_sizes = flags.deployment.pad == "auto";
  if (!flags.input.path.empty()) {
    OpenInput input = open_input(flags.input, flags.deployment.family, rules_for(flags.deployment));
    const ExpertLayer& layer = input.model.layers.front();
    options.checkpoint = flags.input.path.string();
    options.style = flags.input.style;
    options.model_config = flags.input.model_config.path().string();
    options.config = std::move(input.config);
    options.dims = common_dims(input.model);
    options.order = input.model.order;
    options.biases = layer.has(Slot::kW13Bias);
    options.input_scales = layer.has(Slot::kW13InputScale);
  }
  return run_explain(options);
}

}  // namespace mxfp4
