// The table of OUT, printed whole: testdata/output/states.txt. A new text is written by
//   MXFP4_UPDATE_SNAPSHOTS=1 mxfp4_tests --gtest_filter='OutputStates.*'
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "formats/output/states.hpp"
#include "tests/testdata.hpp"

namespace mxfp4 {
namespace {

const std::filesystem::path kStatesFile = test::testdata("output/states.txt");

std::string_view verb_of(Does does) {
  switch (does) {
    case Does::kBegin:
      return "begins";
    case Does::kContinue:
      return "goes on, keeps what is whole";
    case Does::kReplace:
      return "starts over; what is in OUT is replaced when the new result is complete";
    case Does::kRefuse:
      return "refuses";
  }
  return "";
}

// Exit codes as main() gives them.
int exit_code(ErrorKind kind) {
  return kind == ErrorKind::kUsage ? 2 : kind == ErrorKind::kInput ? 3 : 5;
}

std::string answer_text(const Answer& answer) {
  if (answer.does != Does::kRefuse) return fmt::format("    {}\n", verb_of(answer.does));
  std::string text = fmt::format("    exit {}: {}\n", exit_code(answer.kind), answer.words);
  if (!answer.hint.empty()) text += fmt::format("    hint: {}\n", answer.hint);
  return text;
}

// The ways of asking that get the same answer, in one line above the answer.
std::string row_text(There there) {
  std::string text = fmt::format("{}\n", text_of(there));
  std::vector<std::string> answers;
  std::map<std::string, std::vector<std::string_view>> asked;
  for (size_t column = 0; column < kAskeds; ++column) {
    const std::string answer = answer_text(answer_to(there, static_cast<Asked>(column)));
    if (asked[answer].empty()) answers.push_back(answer);
    asked[answer].push_back(text_of(static_cast<Asked>(column)));
  }
  for (const std::string& answer : answers) {
    const bool all = answers.size() == 1;
    text += fmt::format("  {}\n{}",
                        all ? "whatever is asked" : fmt::to_string(fmt::join(asked[answer], ", ")),
                        answer);
  }
  return text + "\n";
}

std::string table_text() {
  std::string text;
  for (size_t row = 0; row < kTheres; ++row) text += row_text(static_cast<There>(row));
  text +=
      "What replaces looks closer, and refuses a file that is not this program's, and losing a "
      "rank\n";
  for (const Answer* answer : {&kKeepsForeign, &kKeepsRank}) text += answer_text(*answer);
  return text;
}

TEST(OutputStates, AreThePrintedTable) {
  const std::string text = table_text();
  if (std::getenv("MXFP4_UPDATE_SNAPSHOTS") != nullptr) std::ofstream(kStatesFile) << text;
  std::ifstream file(kStatesFile);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), text);
}

// Only --force removes what is there, and never an unfinished or complete result of a run that asks
// for anything else.
TEST(OutputStates, OnlyForceReplaces) {
  for (size_t row = 0; row < kTheres; ++row) {
    for (size_t column = 0; column < kAskeds; ++column) {
      const auto asked = static_cast<Asked>(column);
      if (asked == Asked::kForce) continue;
      EXPECT_NE(answer_to(static_cast<There>(row), asked).does, Does::kReplace) << row << column;
    }
  }
}

}  // namespace
}  // namespace mxfp4
