// The evaluator with a rule set of its own: features that not every revision uses.
#include "lib/oracle/select.hpp"

#include <gtest/gtest.h>

#include <array>

#include "lib/core/error.hpp"
#include "lib/oracle/checkpoint.hpp"
#include "lib/oracle/predicates.hpp"
#include "lib/oracle/question.hpp"

namespace mxfp4 {
namespace {

// Two backends, the first with two classes; one list for all, and errors that list reasons.
class SelectTest : public testing::Test {
 protected:
  SelectTest() {
    ExpertClass wrapped = generic_class({.name = "Second",
                                         .device = package("a"),
                                         .activation = always(),
                                         .scheme = always(),
                                         .parallel = always(),
                                         .routing = always()});
    wrapped.checks.insert(wrapped.checks.begin(), {"package", package("q"), "needs q"});
    wrapped.name = "Second";
    rules_.name = "test";
    rules_.activations = {"silu", "silu_no_mul"};
    rules_.routing_methods = {{"R", 9}};
    rules_.all2all_backends = {"allgather_reducescatter"};
    rules_.keys = {{"k8", "K8"}, {"k4", "K4"}};
    rules_.weight_key_text = "W";
    rules_.gated = gated_by_name();
    rules_.uses_all2all = all_of({expert_parallel(), any_of({dp_above_one(), sp_above_one()})});
    rules_.batched = never();
    rules_.requirements = requirements_;
    rules_.classes = {{.name = "First", .checks = {{"lora", lora(), "wants LoRA"}}}, wrapped};
    rules_.backends = backends_;
    rules_.aliases = aliases_;
    rules_.selectors = selectors_;
    rules_.messages.unsupported = {"ValueError", "'{value}': {reason}"};
    rules_.messages.no_classes = {"ValueError", "no {value}"};
    rules_.kernel_settings = settings_;
    deployment_.platform = Platform::kOther;
    deployment_.activation = "silu";
    deployment_.routing_method = "R";
  }

  [[nodiscard]] Decision select() const { return select_backend(rules_, deployment_); }

  std::vector<RequirementRow> requirements_ = {
      {"gated", gated(), {"NotImplementedError", "not gated on {device}"}}};
  std::vector<BackendRow> backends_ = {
      {Backend::MARLIN, "M", "", {"First", "Second"}},
      {Backend::TRITON, "T", "k8", {"Second"}},
      {Backend::NONE, "None", "", {}},
  };
  std::vector<AliasRow> aliases_ = {{"both", {Backend::MARLIN, Backend::TRITON}},
                                    {"nothing", {Backend::NONE}}};
  std::vector<SelectorRow> selectors_ = {
      {.selector = Selector::kGptOss,
       .uses_keys = true,
       .priorities = {{always(), {Backend::TRITON, Backend::MARLIN}}},
       .exhausted = {{.when = always(),
                      .refusal = Refusal{"NotImplementedError",
                                         "Candidates: {candidates}. Reasons: {reasons}. "}}}},
      {.selector = Selector::kDeepseekV4,
       .uses_keys = false,
       .priorities = {{lora(), {Backend::TRITON, Backend::MARLIN}}, {always(), {Backend::MARLIN}}},
       .exhausted = {{.when = always()}}},
  };
  std::vector<KernelSettingsRow> settings_ = {
      {.backend = Backend::MARLIN, .method = "Special", .constructor = "special"},
      {.backend = Backend::MARLIN, .constructor = "usual"},
  };
  RuleSet rules_{};
  Deployment deployment_;
};

TEST_F(SelectTest, ExhaustedListNamesEveryCandidateAndReason) {
  const Decision decision = select();
  EXPECT_EQ(decision.error_type, "NotImplementedError");
  EXPECT_EQ(decision.error_message,
            "Candidates: ['M']. Reasons: backend: M, reason: wants LoRA; backend: M, reason: needs "
            "q. ");
  EXPECT_EQ(decision.trace.size(), 2);
  EXPECT_EQ(decision.trace[1].needs, "package q");
}

TEST_F(SelectTest, KeyChoosesTheCandidates) {
  deployment_.activation_override = "k8";
  EXPECT_EQ(select().error_message, "Candidates: ['T']. Reasons: backend: T, reason: needs q. ");
  deployment_.activation_override = "k4";
  EXPECT_EQ(select().error_message, "Candidates: []. Reasons: . ");
  deployment_.activation_override = "k8";
  deployment_.libs = {"a", "q"};
  EXPECT_EQ(select().backend, Backend::TRITON);
}

TEST_F(SelectTest, KeyDropsNothingWhereThereIsNoFilter) {
  selectors_.front().drops_other_keys = false;
  rules_.selectors = selectors_;
  const Decision list = select();
  ASSERT_EQ(list.trace.size(), 3);
  EXPECT_EQ(list.trace[0].key, "k8") << "its own, where none is asked for";
  EXPECT_FALSE(list.trace[1].key);
  deployment_.activation_override = "k4";
  EXPECT_EQ(select().trace[1].key, "k4");
  deployment_.moe_backend = "both";
  EXPECT_EQ(select().error_message, "'T': needs q");
}

TEST_F(SelectTest, ALayerIsNotConstructedWhereRanksDoNotDivideItsSize) {
  deployment_.intermediate_size = 96;
  deployment_.parallel.tp_size = 5;
  EXPECT_NE(select().error_type, "AssertionError") << "a checkpoint's slices are refused later";
  const Decision refused = construct_layer(rules_, deployment_);
  EXPECT_FALSE(refused.backend);
  EXPECT_EQ(refused.error_type, "AssertionError");
  EXPECT_EQ(refused.error_message, "");
  EXPECT_TRUE(refused.trace.empty());
  deployment_.parallel.enable_expert_parallel = true;  // every rank has whole experts
  EXPECT_NE(construct_layer(rules_, deployment_).error_type, "AssertionError");
  deployment_.parallel = {.tp_size = 4};
  EXPECT_EQ(construct_layer(rules_, deployment_).error_message, select().error_message);
}

TEST_F(SelectTest, WrappedChecksComeBeforeTheSharedOnes) {
  deployment_.libs = {"q"};
  EXPECT_EQ(select().trace.back().reason, "kernel does not support current device None");
  deployment_.libs = {"a", "q"};
  EXPECT_EQ(select().experts_class, "Second");
}

TEST_F(SelectTest, RequirementsComeBeforeEverything) {
  deployment_.activation = "silu_no_mul";
  deployment_.moe_backend = "unheard of";
  const Decision decision = select();
  EXPECT_EQ(decision.error_type, "NotImplementedError");
  EXPECT_EQ(decision.error_message, "not gated on None");
  EXPECT_TRUE(decision.trace.empty());
}

TEST_F(SelectTest, SelectorWithoutKeysUsesEachBackendsOwn) {
  deployment_.selector = Selector::kDeepseekV4;
  deployment_.activation_override = "k4";
  deployment_.lora = true;
  deployment_.libs = {"a", "q"};
  const Decision decision = select();
  EXPECT_EQ(decision.backend, Backend::MARLIN);
  ASSERT_EQ(decision.trace.size(), 2);
  EXPECT_EQ(decision.trace[0].key, "k8");
  EXPECT_EQ(decision.trace[0].reason, "kernel does not support LoRA");
  EXPECT_FALSE(decision.trace[1].key);
  deployment_.lora = false;
  deployment_.libs.clear();
  EXPECT_EQ(select().backend, Backend::NONE);
  EXPECT_EQ(select().experts_class, "");
}

TEST_F(SelectTest, NamedBackendFailsWithTheLastCandidatesReason) {
  deployment_.selector = Selector::kDeepseekV4;
  deployment_.moe_backend = "both";
  EXPECT_EQ(select().error_message, "'T': needs q");
  deployment_.moe_backend = "nothing";
  EXPECT_EQ(select().error_message, "no None");
}

TEST_F(SelectTest, AllToAllByTheRuleSetsOwnDefinition) {
  deployment_.parallel.tp_size = 2;
  deployment_.parallel.enable_expert_parallel = true;
  EXPECT_FALSE(make_question(rules_, deployment_).uses_all2all);
  deployment_.parallel.sequence_parallel = true;
  EXPECT_TRUE(make_question(rules_, deployment_).uses_all2all);
}

TEST_F(SelectTest, SettingsMayDependOnTheCaller) {
  const auto constructor = [&](std::string_view method) {
    const CallerRow caller{.text = "", .holds = nullptr, .method = method};
    return kernel_settings(rules_, deployment_, Backend::MARLIN, &caller, {})->constructor;
  };
  EXPECT_EQ(constructor("Special"), "special");
  EXPECT_EQ(constructor("Other"), "usual");
}

}  // namespace
}  // namespace mxfp4
