#include "apps/explain/explain_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/layouts/output.hpp"

namespace mxfp4 {
namespace {

std::string size_text(std::string_view name, int64_t before, int64_t after) {
  return before == after ? fmt::format("{} {}", name, before)
                         : fmt::format("{} {} -> {}", name, before, after);
}

std::string multiple_text(std::string_view name, int64_t multiple) {
  return multiple == 1 ? fmt::format("{} unchanged", name)
                       : fmt::format("{} up to a multiple of {}", name, multiple);
}

}  // namespace

// The first rank's share of the model before rounding: no other rank has more experts.
LayerDims share_of(const Explanation& e) {
  const RankSlice& rank = e.ranks.front();
  return {static_cast<int64_t>(rank.experts.size()), e.model.hidden_size,
          e.model.intermediate_size / rank.tp_size};
}

std::string sizes_text(const Explanation& e) {
  if (e.ranks.empty()) {
    return fmt::format("{}, {}", multiple_text("H", e.multiples.hidden_size),
                       multiple_text("I", e.multiples.intermediate_size));
  }
  const LayerDims rank = share_of(e);
  const LayerDims& padded = e.ranks.front().padded;
  return fmt::format("E {}, {}, {} (on each rank)", rank.num_experts,
                     size_text("H", rank.hidden_size, padded.hidden_size),
                     size_text("I", rank.intermediate_size, padded.intermediate_size));
}

std::string settings_text(const KernelSettings& s) {
  std::string text = fmt::format("{}, activations {}", s.constructor,
                                 s.activation_dtype.empty() ? "bf16" : s.activation_dtype);
  if (s.activation_shape) text += fmt::format(" {}", *s.activation_shape);
  if (s.takes_input_scales) text += ", input scales";
  if (s.mx_alignment != 0) text += fmt::format(", mx_alignment {}", s.mx_alignment);
  if (!s.scale_swizzled) text += ", scales not swizzled";
  if (s.alpha) text += fmt::format(", alpha {}", *s.alpha);
  if (s.beta) text += fmt::format(", beta {}", *s.beta);
  if (s.clamp_limit) text += fmt::format(", clamp {}", *s.clamp_limit);
  return text;
}

std::string layout_text(const LayoutRow* row) {
  if (row == nullptr) return "none known";
  if (row->layout == nullptr) return fmt::format("none: {}", row->refusal);
  return std::string(id_of(*row->layout));
}

std::string answer_text(const RuleSet& rules, const Explanation& e) {
  const Deployment& d = e.deployment;
  const std::string_view machine =
      d.arch.empty() ? platform_name(d.platform) : std::string_view(d.arch);
  if (!e.decision.backend) {
    return fmt::format("Refused: no backend serves this deployment on {} ({})", machine,
                       rules.name);
  }
  const std::string_view backend = backend_name(*e.decision.backend);
  if (e.refusal) {
    return fmt::format("Refused: nothing can be converted for {} on {} ({})", backend, machine,
                       rules.name);
  }
  return fmt::format("{}{}, layout {}: {}, {}", backend, e.decision.forced ? " (forced)" : "",
                     id_of(*e.layout), machine, rules.name);
}

}  // namespace mxfp4
