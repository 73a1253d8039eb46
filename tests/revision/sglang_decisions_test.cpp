// Every choice that SGLang's own code made on the grid of tests/engines/sglang/choices.py, against
// the rules (testdata/engines/sglang_choices.json).
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/config/config_json.hpp"
#include "lib/core/model_config.hpp"
#include "lib/oracle/checkpoint.hpp"
#include "lib/oracle/question.hpp"
#include "lib/oracle/resolve.hpp"
#include "lib/revisions/revisions.hpp"
#include "tests/testdata.hpp"

namespace mxfp4 {
namespace {

using Json = nlohmann::json;

// The functions that took the weights, by the names that the stand-ins have.
const std::map<std::string, Backend> kTakers = {
    {"triton", Backend::TRITON},
    {"flashinfer trtllm", Backend::FLASHINFER_TRTLLM_MXFP4_MXFP8},
    {"flashinfer cutlass sm90", Backend::FLASHINFER_CUTLASS_MXFP4_BF16},
    {"flashinfer cutlass mxfp8", Backend::FLASHINFER_CUTLASS_MXFP4_MXFP8},
    {"marlin", Backend::MARLIN},
    {"deep_gemm", Backend::DEEPGEMM_MXFP4},
    {"humming", Backend::HUMMING},
    {"aiter", Backend::AITER_MXFP4_BF16},
    {"amx", Backend::CPU},
    {"as loaded", Backend::XPU},
};

struct SglangQuestion {
  std::string model, device, variables, runner;
  int64_t tp = 1;
  bool ep = false;

  [[nodiscard]] std::string text() const {
    return fmt::format("{} {} [{}] {} tp {}{}", model, device, variables, runner, tp,
                       ep ? " ep" : "");
  }
};

std::map<std::string, std::string> variables_in(const std::string& text) {
  std::map<std::string, std::string> out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string one = text.substr(at, end - at);
    out.emplace(one.substr(0, one.find('=')), one.substr(one.find('=') + 1));
    at = end + 1;
  }
  return out;
}

DeploymentFacts facts_of(const SglangQuestion& q) {
  DeploymentFacts facts;
  if (q.device == "xpu") {
    facts.platform = Platform::kXpu;
  } else {
    facts.arch = q.device == "cpu" ? "x86_64" : q.device == "cpu-amx" ? "x86_64-amx" : q.device;
  }
  facts.env = variables_in(q.variables);
  facts.moe_backend = q.runner;
  facts.tp_size = q.tp;
  facts.enable_expert_parallel = q.ep;
  return facts;
}

// Empty: the rules say what SGLang did.
std::string difference(const RuleSet& rules, const ModelConfig& config, const SglangQuestion& q,
                       const Json& answer) {
  const CallerRow* caller = find_caller(rules, config);
  const Deployment deployment = resolve_deployment(rules, facts_of(q), caller, &config);
  const ModelFacts facts{.caller = caller};
  const Decision decision = decide(rules, deployment, facts);
  std::string stops;
  for (const LoadNote& note : load_notes(rules, deployment, facts, decision)) {
    // This one is an error of the first request, which nobody made.
    if (note.stops && note.text.find("first request") == std::string::npos) stops = note.text;
  }
  const std::string said = decision.backend ? std::string(backend_name(*decision.backend))
                                            : decision.error_type + ": " + decision.error_message;
  const auto differs = [&](const std::string& wanted) {
    return fmt::format("{}: executed {}, rules {} {}", q.text(), wanted, said, stops);
  };
  if (answer.contains("error")) {
    const auto type = answer["error"].get<std::string>();
    const bool named =
        decision.backend ? stops.find(type) != std::string::npos : decision.error_type == type;
    return named ? "" : differs(type + ": " + answer["message"].get<std::string>());
  }
  const auto path = answer["path"].get<std::string>();
  const auto taker = kTakers.find(path);
  // SGLang takes a path of which the rules know that it gives wrong experts.
  if (path == "flashinfer cutlass mxfp8" && !decision.backend &&
      decision.trace.front().candidate.find("CUTLASS") != std::string::npos &&
      decision.error_message.find("experts are wrong") != std::string::npos) {
    return "";
  }
  if (taker != kTakers.end()) {
    return decision.backend == taker->second && stops.empty() ? "" : differs(path);
  }
  const std::string_view word = path == "bf16" ? "BF16" : "FP8";
  const bool named = !decision.backend && decision.error_type.empty() &&
                     decision.error_message.find(word) != std::string::npos;
  return named ? "" : differs(path);
}

TEST(SglangDecisions, EqualWhatItsOwnCodeChose) {
  const Json data = Json::parse(std::ifstream(test::testdata("engines/sglang_choices.json")));
  std::map<std::string, ModelConfig> configs;
  for (const auto& item : data["models"].items()) {
    configs.emplace(item.key(), parse_model_config(item.value().dump(), item.key()));
  }
  for (const Release* release : releases_of(Engine::kSglang)) {
    const Json& executed = data["releases"].at(std::string(release->version()));
    int64_t asked = 0;
    std::vector<std::string> wrong;
    for (const auto& row : executed["rows"].items()) {
      const std::string& key = row.key();  // "MODEL DEVICE VARIABLES RUNNER", "-" for no variables
      std::vector<std::string> words;
      for (size_t at = 0; at < key.size();) {
        const size_t end = std::min(key.find(' ', at), key.size());
        words.push_back(key.substr(at, end - at));
        at = end + 1;
      }
      ASSERT_EQ(words.size(), 4U) << key;
      for (size_t i = 0; i < row.value().size(); ++i) {
        const Json& parallel = data["parallel"][i];
        const SglangQuestion q{words[0],
                               words[1],
                               words[2] == "-" ? "" : words[2],
                               words[3],
                               parallel[0].get<int64_t>(),
                               parallel[1].get<bool>()};
        const Json& answer = executed["answers"][row.value()[i].get<size_t>()];
        ++asked;
        const std::string text = difference(rules_of(*release), configs.at(words[0]), q, answer);
        if (!text.empty()) wrong.push_back(text);
      }
    }
    EXPECT_EQ(asked, executed["questions"].get<int64_t>());
    EXPECT_TRUE(wrong.empty()) << release->name << ": " << wrong.size() << " of " << asked
                               << " differ\n"
                               << fmt::format("{}", fmt::join(wrong, "\n"));
  }
}

}  // namespace
}  // namespace mxfp4
