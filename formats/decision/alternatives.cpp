#include "formats/decision/alternatives.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

using Changes = std::vector<Change>;

struct Search {
  const ConversionRequest& request;
  const Conversion& conversion;
  const OpenedCheckpoint* checkpoint;

  [[nodiscard]] const RuleSet& rules() const { return *request.rules; }
};

Changes joined(const Changes& first, const Changes& second) {
  Changes all = first;
  for (const Change& change : second) {
    std::erase_if(
        all, [&](const Change& old) { return old.kind == change.kind && old.name == change.name; });
    all.push_back(change);
  }
  return all;
}

// The conversion after the changes; empty if they contradict the request.
std::optional<Conversion> decide_after(const Search& search, const Changes& changes) {
  try {
    return decide_conversion(
        changed_request(search.request, search.conversion, search.checkpoint, changes),
        search.checkpoint);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Every value of --moe-backend that the engine's command line accepts.
std::vector<Change> named_backends(const RuleSet& rules) {
  std::vector<Change> changes;
  for (const AliasRow& alias : rules.aliases) {
    const std::string name(alias.name);
    if (moe_backend_option(rules, name)) changes.push_back({FactKind::kMoeBackend, "", name});
  }
  return changes;
}

std::vector<Change> keys(const RuleSet& rules) {
  std::vector<Change> changes{{FactKind::kActivationKey, "", std::nullopt}};
  std::set<std::string_view> seen;
  for (const BackendRow& row : rules.backends) {
    if (row.key.empty() || !seen.insert(row.key).second) continue;
    changes.push_back({FactKind::kActivationKey, "", std::string(row.key)});
  }
  return changes;
}

// Every environment variable that the selection of a backend reads, switched on.
std::vector<Change> variables(const RuleSet& rules) {
  std::set<std::string> names;
  for (const SelectorRow& selector : rules.selectors) {
    for (const EnvOverrideRow& row : selector.env_overrides) names.emplace(row.variable);
  }
  for (const ExpertClass& row : rules.classes) {
    for (const Check& check : row.checks) {
      for (const Fact& fact : check.passes.facts) {
        if (fact.kind == FactKind::kVariable) names.emplace(fact.name);
      }
    }
  }
  std::vector<Change> changes;
  changes.reserve(names.size());
  for (const std::string& name : names) changes.push_back({FactKind::kVariable, name, "1"});
  return changes;
}

void append_pairs(const std::vector<Change>& first, const std::vector<Change>& second,
                  std::vector<Changes>& ways) {
  for (const Change& a : first) {
    for (const Change& b : second) ways.push_back({a, b});
  }
}

bool emulates(const RuleSet& rules, const Decision& decision) {
  const BackendRow* row = decision.backend ? find_backend_row(rules, *decision.backend) : nullptr;
  return row != nullptr && row->emulates;
}

// What a user of the engine could set, the fewest settings first.
std::vector<Changes> all_ways(const RuleSet& rules) {
  const std::vector<Change> backends = named_backends(rules);
  const std::vector<Change> overrides = keys(rules);
  const std::vector<Change> switches = variables(rules);
  std::vector<Changes> ways{{}};
  for (const auto* changes : {&backends, &overrides, &switches}) {
    for (const Change& change : *changes) ways.push_back({change});
  }
  append_pairs(backends, overrides, ways);
  append_pairs(backends, switches, ways);
  append_pairs(overrides, switches, ways);
  return ways;
}

// The settings to try if another machine or package is needed, too: few, since there are many
// needs.
std::vector<Changes> short_ways(const RuleSet& rules, const BackendRow& row) {
  std::vector<Changes> ways{{}};
  const Change key{FactKind::kActivationKey, "",
                   row.key.empty() ? std::nullopt : std::optional(std::string(row.key))};
  for (const Change& change : named_backends(rules)) ways.push_back({change});
  ways.push_back({key});
  for (const Change& change : named_backends(rules)) ways.push_back({change, key});
  return ways;
}

bool of_the_model(const Changes& changes) {
  return std::ranges::any_of(changes, [](const Change& change) {
    return change.kind == FactKind::kActivation || change.kind == FactKind::kRouting;
  });
}

int64_t bytes_of(const Conversion& conversion, const OpenedCheckpoint* checkpoint) {
  if (checkpoint == nullptr) return 0;
  return make_plan(checkpoint->model, conversion.ranks, plan_options(conversion)).output_bytes;
}

bool gives(const std::optional<Conversion>& conversion, Backend backend) {
  return conversion && !conversion->refusal && conversion->decision.backend == backend;
}

// Finds a machine or package that makes the engine choose the backend, for one of its classes.
void find_needs(const Search& search, const BackendRow& row, Alternative& out) {
  const Asker asker = asker_of(search.request, search.conversion, search.checkpoint);
  const std::optional<std::string_view> key =
      row.key.empty() ? std::nullopt : std::optional(row.key);
  for (const std::string_view name : row.classes) {
    Changes needs = class_needs(asker, name, key);
    const std::string package(row.required_package);
    if (!package.empty()) needs = joined(needs, {{FactKind::kPackage, package, "present"}});
    if (needs.empty() || of_the_model(needs)) continue;
    for (const Changes& way : short_ways(search.rules(), row)) {
      const std::optional<Conversion> there = decide_after(search, joined(needs, way));
      if (!gives(there, row.backend)) continue;
      if (out.conversion && out.needs.size() + out.how.size() <= needs.size() + way.size()) break;
      out.needs = needs;
      out.how = way;
      out.conversion = there;
      break;
    }
  }
}

}  // namespace

Asker asker_of(const ConversionRequest& request, const Conversion& conversion,
               const OpenedCheckpoint* checkpoint) {
  const bool config = checkpoint != nullptr && checkpoint->config.has_value();
  return {*request.rules, request.deployment, conversion.caller,
          config ? &*checkpoint->config : nullptr};
}

ConversionRequest changed_request(const ConversionRequest& request, const Conversion& conversion,
                                  const OpenedCheckpoint* checkpoint,
                                  const std::vector<Change>& changes) {
  ConversionRequest changed = request;
  changed.backend.reset();
  changed.deployment.needs_arch = true;
  changed.deployment = with_changes(asker_of(changed, conversion, checkpoint), changes);
  return changed;
}

std::vector<Alternative> find_alternatives(const ConversionRequest& request,
                                           const Conversion& conversion,
                                           const OpenedCheckpoint* checkpoint) {
  const Search search{request, conversion, checkpoint};
  std::vector<Alternative> found;
  const auto known = [&](Backend backend) {
    return std::ranges::find(found, backend, &Alternative::backend) != found.end();
  };
  for (const Changes& way : all_ways(search.rules())) {
    std::optional<Conversion> there = decide_after(search, way);
    if (!there || there->refusal || known(*there->decision.backend)) continue;
    const Backend backend = *there->decision.backend;
    const int64_t bytes = bytes_of(*there, checkpoint);
    found.push_back(
        {.backend = backend, .how = way, .conversion = std::move(there), .blob_bytes = bytes});
  }
  for (const BackendRow& row : search.rules().backends) {
    if (row.classes.empty() || known(row.backend)) continue;
    Alternative other{.backend = row.backend};
    find_needs(search, row, other);
    if (other.conversion) other.blob_bytes = bytes_of(*other.conversion, checkpoint);
    found.push_back(std::move(other));
  }
  return found;
}

std::vector<Change> ways_out(const ConversionRequest& request, const Conversion& conversion,
                             const OpenedCheckpoint* checkpoint) {
  const Search search{request, conversion, checkpoint};
  std::vector<Changes> ways;
  for (const FactKind kind :
       {FactKind::kMoeBackend, FactKind::kEplb, FactKind::kLora, FactKind::kActivationKey,
        FactKind::kAll2AllBackend, FactKind::kSequenceParallel, FactKind::kExpertParallel}) {
    ways.push_back({{kind, "", std::nullopt}});
  }
  for (const auto& [name, value] : request.deployment.env) {
    ways.push_back({{FactKind::kVariable, name, std::nullopt}});
  }
  for (const Changes& way : all_ways(search.rules())) {
    if (!way.empty()) ways.push_back(way);
  }
  for (const Changes& way : ways) {
    const std::optional<Conversion> there = decide_after(search, way);
    if (!there || there->refusal || emulates(search.rules(), there->decision)) continue;
    return way;
  }
  return {};
}

}  // namespace mxfp4
