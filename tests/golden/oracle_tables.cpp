#include "tests/golden/oracle_tables.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "formats/config/deployment_json.hpp"
#include "lib/core/error.hpp"
#include "lib/oracle/checkpoint.hpp"
#include "lib/oracle/question.hpp"
#include "lib/oracle/resolve.hpp"
#include "tests/testdata.hpp"

namespace mxfp4::test {
namespace {

using nlohmann::json;

std::ifstream open_table(const std::string& name) {
  std::ifstream file(test::testdata("oracle") / name);
  EXPECT_TRUE(file) << name;
  return file;
}

}  // namespace

json read_table(const std::string& name) {
  std::ifstream file = open_table(name);
  return json::parse(file);
}

std::string difference_text(const json& found, const json& expected) {
  const json patch = json::diff(expected, found);  // what turns the one into the other
  if (patch.empty()) return "";
  const json::json_pointer at(patch.front().at("path").get<std::string>());
  const auto value = [&](const json& document) {
    return document.contains(at) ? document.at(at).dump() : std::string("nothing");
  };
  return at.to_string() + ": expected " + value(expected) + ", found " + value(found);
}

std::string place_text(const std::string& table, size_t row) {
  return "row " + std::to_string(row) + " of testdata/oracle/" + table;
}

json parallel_answers(const Question& question) {
  return {question.parallel.tp_size, question.parallel.ep_size, question.parallel.use_ep,
          question.uses_all2all, question.batched};
}

void expect_decisions(const RuleSet& rules, const std::string& name, int at_least) {
  std::ifstream file = open_table(name);
  int count = 0;
  for (std::string line; std::getline(file, line); ++count) {
    const json c = json::parse(line);
    const Decision decision = select_backend(rules, parse_deployment(c.at("input").dump()));
    json want = c.at("expect");
    want.erase("stage");
    const std::string place = place_text(name, static_cast<size_t>(count)) + ", case ";
    EXPECT_EQ(difference_text(json::parse(decision_json(decision, /*trace=*/false)), want), "")
        << place << c.at("id");
    want["trace"] = c.at("trace");
    EXPECT_EQ(difference_text(json::parse(decision_json(decision, /*trace=*/true)), want), "")
        << place << c.at("id");
  }
  EXPECT_GE(count, at_least);
}

void expect_all2all_hidden(const RuleSet& rules, const std::string& name,
                           std::span<const std::string> backends) {
  const json table = read_table(name);
  for (const json& row : table.at("rows")) {
    for (size_t i = 0; i < backends.size(); ++i) {
      json got;
      try {
        got = round_up_all2all_hidden(rules, backends[i], row[0]);
      } catch (const Error& error) {
        EXPECT_EQ(error.reference_type_name(), "ValueError");
        got = error.what();
      }
      EXPECT_EQ(got, row[i + 1]) << backends[i] << " " << row;
    }
  }
}

void expect_routing_numbers(const RuleSet& rules, const json& table) {
  for (const auto& [name, number] : table.at("values").items()) {
    const auto found =
        std::ranges::find(rules.routing_methods, std::string_view(name), &NumberedName::name);
    ASSERT_NE(found, rules.routing_methods.end()) << name;
    EXPECT_EQ(found->number, number.get<int>());
  }
}

void expect_moe_backend_names(const RuleSet& rules, const std::string& name) {
  const json table = read_table(name);
  for (const json& c : table.at("cases")) {
    EXPECT_EQ(or_null(moe_backend_option(rules, c.at("input").get<std::string>())),
              c.value("normalized", json()))
        << c;
  }
}

}  // namespace mxfp4::test
