// Comparisons with the tables of the reference's answers (testdata/oracle/README.md) that every
// revision has.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>

#include "lib/oracle/question.hpp"
#include "lib/oracle/rule_set.hpp"

namespace mxfp4::test {

// A file below testdata/oracle.
[[nodiscard]] nlohmann::json read_table(const std::string& name);

// The first element in which two answers differ: "/trace/3/2: expected true, found false".
// Empty: none.
[[nodiscard]] std::string difference_text(const nlohmann::json& found,
                                          const nlohmann::json& expected);

// Where an expected answer is: "row 17 of testdata/oracle/decisions.jsonl", counted from 0.
[[nodiscard]] std::string place_text(const std::string& table, size_t row);

template <class Value>
[[nodiscard]] nlohmann::json or_null(const std::optional<Value>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

// The columns of answers in a table of parallel sizes.
[[nodiscard]] nlohmann::json parallel_answers(const Question& question);

// Each of these compares `rules` with one table. Decisions are compared with and without traces;
// there are at least `at_least`.
void expect_decisions(const RuleSet& rules, const std::string& name, int at_least);
// A row: the hidden size, then an answer for each of `backends`.
void expect_all2all_hidden(const RuleSet& rules, const std::string& name,
                           std::span<const std::string> backends);
void expect_routing_numbers(const RuleSet& rules, const nlohmann::json& table);
void expect_moe_backend_names(const RuleSet& rules, const std::string& name);

}  // namespace mxfp4::test
