// The facts of a deployment that a user may give, and the one table that says how each is called:
// on the command line, in the --target file, in a line of a batch, in a manifest and on the screen.
// Flags, help, reading, writing and comparing follow from the table: a new fact is a member of
// DeploymentFacts, a member of Deployment or ParallelConfig, and one row.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "lib/core/deployment.hpp"
#include "lib/core/fact_kind.hpp"

namespace mxfp4 {

// The facts of a deployment as given; empty: not given.
struct DeploymentFacts {
  // The engine on the serving machine: "0.33.0" is vLLM's, "sglang-0.5.23" SGLang's.
  std::optional<std::string> engine_version;
  std::optional<std::string> cuda_compiler;  // version of the one that humming-kernels finds there
  std::optional<Platform> platform;
  std::optional<std::string> arch;
  bool needs_arch = true;  // false: the backend is already known, so no device test will ask
  std::optional<std::set<std::string>> libs;
  std::map<std::string, std::string> lib_versions;  // of the libs whose version was given
  std::set<std::string> absent_libs;                // taken away from libs or from the stock set
  std::map<std::string, std::string> env;           // of the serving process
  std::optional<Selector> selector;
  std::optional<std::string> moe_backend;
  std::optional<std::string> activation_override;
  std::optional<std::string> weight_override;
  std::optional<std::string> activation;
  std::optional<std::string> routing_method;
  std::optional<bool> lora;
  std::optional<int64_t> tp_size;
  std::optional<int64_t> pcp_size;
  std::optional<int64_t> dp_size;
  std::optional<bool> enable_expert_parallel;
  std::optional<std::string> all2all_backend;
  std::optional<bool> enable_eplb;
  std::optional<int64_t> num_redundant_experts;
  std::optional<bool> sequence_parallel;
};

// Where a fact is kept: as it was given, and as every fact of the deployment is known.
template <class Value, class Owner>
struct FactMembers {
  std::optional<Value> DeploymentFacts::*given;
  Value Owner::*known;
};
struct OwnMembers {};  // a fact with a type of its own, which its reader knows

using FactStorage =
    std::variant<OwnMembers, FactMembers<int64_t, ParallelConfig>,
                 FactMembers<bool, ParallelConfig>, FactMembers<std::string, ParallelConfig>,
                 FactMembers<bool, Deployment>, FactMembers<std::string, Deployment>>;

// An empty text: the fact has no such name, or no such place.
struct FactRow {
  FactKind kind;
  std::string_view name;          // in the JSON of `explain`
  std::string_view flag;          // "--tp-size"
  std::string_view other_flag{};  // the same, as another engine calls it
  std::string_view target{};      // member of a --target file
  std::string_view batch{};       // member of a batch's line, or of its object "parallel"
  std::string_view manifest{};    // JSON pointer in a manifest
  std::string_view value{};       // of the flag, for its help; empty: a switch
  std::string_view help{};
  std::string_view words{};  // on the screen, behind the parallel sizes
  FactStorage members{};
  // Younger than batches and manifests: absent there is 0, and 0 is not written.
  bool absent_if_zero = false;

  [[nodiscard]] bool is_switch() const { return value.empty(); }
  // "tp_size", the last part of the JSON pointer.
  [[nodiscard]] std::string manifest_key() const;
};

// All rows, in the order in which manifests and batches have them.
[[nodiscard]] std::span<const FactRow> deployment_facts();

// The member of a deployment that holds the fact.
template <class Value>
[[nodiscard]] Value& fact_in(Deployment& deployment, FactMembers<Value, Deployment> members) {
  return deployment.*members.known;
}
template <class Value>
[[nodiscard]] Value& fact_in(Deployment& deployment, FactMembers<Value, ParallelConfig> members) {
  return deployment.parallel.*members.known;
}

// Calls use(row, members) for every fact that has FactMembers.
template <class Use>
void for_each_fact(Use&& use) {
  for (const FactRow& row : deployment_facts()) {
    std::visit(
        [&]<class Members>(const Members& members) {
          if constexpr (!std::is_same_v<Members, OwnMembers>) use(row, members);
        },
        row.members);
  }
}

// The same for the facts that Owner holds: ParallelConfig, or Deployment itself.
template <class Owner, class Use>
void for_each_fact_of(Use&& use) {
  for_each_fact([&]<class Value, class Of>(const FactRow& row, FactMembers<Value, Of> members) {
    if constexpr (std::is_same_v<Of, Owner>) use(row, members);
  });
}

}  // namespace mxfp4
