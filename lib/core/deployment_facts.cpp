#include "lib/core/deployment_facts.hpp"

#include <algorithm>
#include <array>

namespace mxfp4 {
namespace {

template <class Value>
using Parallel = FactMembers<Value, ParallelConfig>;
template <class Value>
using Process = FactMembers<Value, Deployment>;

using Facts = DeploymentFacts;

constexpr std::array kFacts = {
    FactRow{.kind = FactKind::kEngine,
            .name = "revision",
            .flag = "--revision",
            .target = "vllm",
            .manifest = "/revision",
            .value = "NAME",
            .help = "Release of the engine that serves (list revisions); default: the newest"},
    FactRow{.kind = FactKind::kPlatform,
            .name = "platform",
            .flag = "--platform",
            .target = "platform",
            .batch = "platform",
            .manifest = "/target/platform",
            .value = "cuda|rocm|xpu|cpu|other",
            .help = "Follows from --arch where it can"},
    FactRow{.kind = FactKind::kMachine,
            .name = "machine",
            .flag = "--arch",
            .target = "arch",
            .batch = "arch",
            .manifest = "/target/arch",
            .value = "ARCH",
            .help = "GPU or CPU: sm90, H100, gfx950, x86_64 (list machines)"},
    FactRow{.kind = FactKind::kPackage,
            .name = "package",
            .flag = "--libs",
            .target = "libs",
            .batch = "libs",
            .value = "LIST|none",
            .help = "Kernel packages on that machine; default: the stock set"},
    FactRow{.kind = FactKind::kCompiler,
            .name = "cuda_compiler",
            .flag = "",
            .target = "cuda_compiler"},
    FactRow{.kind = FactKind::kVariable,
            .name = "variable",
            .flag = "--env",
            .target = "env",
            .batch = "env",
            .manifest = "/target/env",
            .value = "NAME=VALUE",
            .help = "Environment variable of the serving process; repeatable"},
    FactRow{.kind = FactKind::kSelector,
            .name = "selector",
            .flag = "--selector",
            .batch = "selector",
            .value = "gpt_oss|deepseek_v4",
            .help = "Selection function; default: from the checkpoint"},
    FactRow{.kind = FactKind::kMoeBackend,
            .name = "moe_backend",
            .flag = "--moe-backend",
            .other_flag = "--moe-runner-backend",
            .batch = "moe_backend",
            .value = "NAME",
            .help = "The engine's own name for it; default auto",
            .members = Process<std::string>{&Facts::moe_backend, &Deployment::moe_backend}},
    FactRow{.kind = FactKind::kActivationKey,
            .name = "activation_key",
            .flag = "--quantization-config",
            .batch = "activation_override",
            .value = "FILE|JSON",
            .help = "The engine's override object, e.g. {\"moe\": {\"activation\": \"mxfp8\"}}"},
    FactRow{.kind = FactKind::kActivation,
            .name = "activation",
            .flag = "--activation",
            .batch = "activation",
            .value = "NAME",
            .help = "Activation function of the experts",
            .members = Process<std::string>{&Facts::activation, &Deployment::activation}},
    FactRow{.kind = FactKind::kRouting,
            .name = "routing_method",
            .flag = "--routing-method",
            .batch = "routing_method",
            .value = "NAME",
            .help = "Default: from the checkpoint",
            .members = Process<std::string>{&Facts::routing_method, &Deployment::routing_method}},
    FactRow{.kind = FactKind::kTpSize,
            .name = "tp_size",
            .flag = "--tp-size",
            .batch = "tp",
            .manifest = "/deployment/tp_size",
            .value = "N",
            .help = "Tensor parallel size",
            .members = Parallel<int64_t>{&Facts::tp_size, &ParallelConfig::tp_size}},
    FactRow{.kind = FactKind::kPcpSize,
            .name = "pcp_size",
            .flag = "--pcp-size",
            .batch = "pcp",
            .manifest = "/deployment/pcp_size",
            .value = "N",
            .help = "Prefill context parallel size",
            .members = Parallel<int64_t>{&Facts::pcp_size, &ParallelConfig::pcp_size}},
    FactRow{.kind = FactKind::kDpSize,
            .name = "dp_size",
            .flag = "--dp-size",
            .batch = "dp",
            .manifest = "/deployment/dp_size",
            .value = "N",
            .help = "Data parallel size",
            .members = Parallel<int64_t>{&Facts::dp_size, &ParallelConfig::dp_size}},
    FactRow{.kind = FactKind::kExpertParallel,
            .name = "expert_parallel",
            .flag = "--enable-expert-parallel",
            .batch = "enable_expert_parallel",
            .manifest = "/deployment/enable_expert_parallel",
            .help = "Split by experts instead of rows",
            .members = Parallel<bool>{&Facts::enable_expert_parallel,
                                      &ParallelConfig::enable_expert_parallel}},
    FactRow{.kind = FactKind::kAll2AllBackend,
            .name = "all2all_backend",
            .flag = "--all2all-backend",
            .other_flag = "--moe-a2a-backend",
            .batch = "all2all_backend",
            .manifest = "/deployment/all2all_backend",
            .value = "NAME",
            .help = "All-to-all kernels",
            .members =
                Parallel<std::string>{&Facts::all2all_backend, &ParallelConfig::all2all_backend}},
    FactRow{.kind = FactKind::kEplb,
            .name = "eplb",
            .flag = "--enable-eplb",
            .batch = "enable_eplb",
            .manifest = "/deployment/enable_eplb",
            .help = "Expert load balancing",
            .words = "EPLB",
            .members = Parallel<bool>{&Facts::enable_eplb, &ParallelConfig::enable_eplb}},
    FactRow{.kind = FactKind::kRedundantExperts,
            .name = "redundant_experts",
            .flag = "--num-redundant-experts",
            .batch = "num_redundant_experts",
            .manifest = "/deployment/num_redundant_experts",
            .value = "N",
            .help = "EPLB's experts beyond the model's own, of all ranks together",
            .members = Parallel<int64_t>{&Facts::num_redundant_experts,
                                         &ParallelConfig::num_redundant_experts},
            .absent_if_zero = true},
    FactRow{
        .kind = FactKind::kSequenceParallel,
        .name = "sequence_parallel",
        .flag = "--sequence-parallel",
        .batch = "sequence_parallel",
        .manifest = "/deployment/sequence_parallel",
        .help = "Sequence parallel MoE",
        .words = "sequence parallel",
        .members = Parallel<bool>{&Facts::sequence_parallel, &ParallelConfig::sequence_parallel}},
    FactRow{.kind = FactKind::kLora,
            .name = "lora",
            .flag = "--enable-lora",
            .batch = "lora",
            .help = "LoRA adapters",
            .members = Process<bool>{&Facts::lora, &Deployment::lora}},
};

void set_value(std::optional<int64_t>& fact, const std::optional<std::string>& value) {
  fact = value ? std::optional<int64_t>(std::stoll(*value)) : std::nullopt;
}
void set_value(std::optional<bool>& fact, const std::optional<std::string>& value) {
  fact = value ? std::optional(true) : std::nullopt;
}
void set_value(std::optional<std::string>& fact, const std::optional<std::string>& value) {
  fact = value;
}

}  // namespace

std::string FactRow::manifest_key() const {
  return std::string(manifest.substr(manifest.rfind('/') + 1));
}

std::span<const FactRow> deployment_facts() { return kFacts; }

const FactRow* find_fact(FactKind kind) {
  const auto found = std::ranges::find(kFacts, kind, &FactRow::kind);
  return found == kFacts.end() ? nullptr : &*found;
}

bool set_fact(DeploymentFacts& facts, FactKind kind, const std::optional<std::string>& value) {
  const FactRow* row = find_fact(kind);
  if (row == nullptr) return false;
  return std::visit(
      [&]<class Members>(const Members& members) {
        if constexpr (std::is_same_v<Members, OwnMembers>) {
          return false;
        } else {
          set_value(facts.*members.given, value);
          return true;
        }
      },
      row->members);
}

}  // namespace mxfp4
