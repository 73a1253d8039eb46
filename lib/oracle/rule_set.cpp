// Look-ups in a rule set's tables, and the size rules.
#include "lib/oracle/rule_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "lib/core/checked.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

bool holds(const TargetCondition& condition, const Target& target) {
  const auto variable_holds = [&](const AskedVariable& variable) {
    if (variable.name.empty()) return true;
    const auto found = target.env.find(std::string(variable.name));
    return found == target.env.end() ? variable.holds_if_unset : variable.holds(found->second);
  };
  return (condition.holds == nullptr || condition.holds(target)) &&
         std::ranges::all_of(condition.variables, variable_holds);
}

std::string fill_sizes(std::string_view text, int64_t hidden, int64_t largest) {
  return fmt::format(fmt::runtime(text), fmt::arg("hidden", hidden), fmt::arg("largest", largest));
}

}  // namespace

LayerDims round_up_sizes(const RuleSet& rules, const Target& target, LayerDims dims,
                         std::string_view method) {
  if (const RoundingRow* row = find_rounding_row(rules, target, method)) {
    dims.hidden_size = round_up(dims.hidden_size, row->hidden_multiple);
    dims.intermediate_size = round_up(dims.intermediate_size, row->intermediate_multiple);
  }
  return dims;
}

const RoundingRow* find_rounding_row(const RuleSet& rules, const Target& target,
                                     std::string_view method) {
  for (const RoundingRow& row : rules.rounding) {
    if (holds(row.when, target) && (row.method.empty() || row.method == method)) return &row;
  }
  return nullptr;
}

int64_t round_up_all2all_hidden(const RuleSet& rules, std::string_view all2all_backend,
                                int64_t hidden) {
  for (const All2AllHiddenRow& row : rules.all2all_hidden) {
    if (row.all2all_backend != all2all_backend) continue;
    if (row.sizes.empty()) return round_up(hidden, row.multiple);
    const auto fits = std::ranges::lower_bound(row.sizes, hidden);
    if (fits != row.sizes.end()) return *fits;
    const Refusal& refusal = rules.all2all_hidden_refusal;
    throw Error::unsupported(fill_sizes(refusal.text, hidden, row.sizes.back()))
        .reference_type(std::string(refusal.type));
  }
  return hidden;
}

const LeastSliceRow* find_least_slice(const RuleSet& rules, Platform platform,
                                      const ModelConfig& config) {
  for (const LeastSliceRow& row : rules.least_slices) {
    if (row.platform.value_or(platform) == platform && row.holds(config)) return &row;
  }
  return nullptr;
}

const LayoutRow* find_layout_row(const RuleSet& rules, const Target& target) {
  for (const LayoutRow& row : rules.layouts) {
    if (row.backend != target.backend) continue;
    if (row.family && *row.family != target.family) continue;
    if (holds(row.when, target)) return &row;
  }
  return nullptr;
}

const BackendRow* find_backend_row(const RuleSet& rules, Backend backend) {
  const auto row = std::ranges::find(rules.backends, backend, &BackendRow::backend);
  return row == rules.backends.end() ? nullptr : &*row;
}

const ModelBackendRow* find_model_backend(const RuleSet& rules, Backend backend) {
  const auto row = std::ranges::find(rules.model_backends, backend, &ModelBackendRow::backend);
  return row == rules.model_backends.end() ? nullptr : &*row;
}

const ExpertClass* find_class(const RuleSet& rules, std::string_view name) {
  const auto found = std::ranges::find(rules.classes, name, &ExpertClass::name);
  return found == rules.classes.end() ? nullptr : &*found;
}

const ActivationKeyRow* find_key_row(const RuleSet& rules, std::string_view name) {
  const auto row = std::ranges::find(rules.keys, name, &ActivationKeyRow::name);
  return row == rules.keys.end() ? nullptr : &*row;
}

bool is_package(const RuleSet& rules, std::string_view name) {
  return std::ranges::find(rules.packages, name) != rules.packages.end();
}

const ConverterRow* find_converter_row(const RuleSet& rules, Backend backend, Family family) {
  for (const ConverterRow& row : rules.converters) {
    if (row.backend == backend && row.family == family) return &row;
  }
  return nullptr;
}

}  // namespace mxfp4
