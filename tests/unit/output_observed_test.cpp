// Every state of OUT, made on disk as this program leaves it: observe() has to see it, and every
// refusal of the table has to be said of one of these directories. What is seen and said:
// testdata/output/observed.txt. A new text is written by
//   MXFP4_UPDATE_SNAPSHOTS=1 mxfp4_tests --gtest_filter='OutputObserved.*'
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "formats/output/conversion_output.hpp"
#include "tests/testdata.hpp"
#include "tests/unit/made_output.hpp"
#include "tests/unit/scratch_path.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

const fs::path kObservedFile = test::testdata("output/observed.txt");

using test::complete;
using test::cut_off;
using test::OutRun;

constexpr Shard kFirst{0, 2};
constexpr Shard kSecond{1, 2};

struct OutCase {
  std::string name;
  std::function<void(const fs::path&)> build;
  OutRun asks{};
  std::string out = "out";
  bool busy = false;
};

const std::vector<OutCase>& out_cases() {
  static const std::vector<OutCase> kCases{
      {"nothing", [](const fs::path&) {}},
      {"an empty directory", [](const fs::path& out) { fs::create_directory(out); }},
      {"a file", [](const fs::path& out) { std::ofstream(out) << "text"; }},
      {"a directory that is written", [](const fs::path&) {}, {}, "out", true},
      {"a folder of a blob",
       [](const fs::path& out) { complete(out.parent_path(), {}); },
       {},
       "out/in"},
      {"a folder of a blob with ranks",
       [](const fs::path& out) { complete(out.parent_path(), {.ranks = {0}}); },
       {},
       "out/in"},
      {"notes",
       [](const fs::path& out) {
         fs::create_directory(out);
         std::ofstream(out / "notes.txt") << "mine";
       }},
      {"notes beside the result",
       [](const fs::path& out) {
         complete(out, {});
         std::ofstream(out / "notes.txt") << "mine";
       }},
      {"the result", [](const fs::path& out) { complete(out, {}); }},
      {"the result in a model directory",
       [](const fs::path& out) { complete(out, {.include_rest = true}); },
       {.include_rest = true}},
      {"the result in another place",
       [](const fs::path& out) { complete(out, {.include_rest = true}); }},
      {"rank 0 of 2",
       [](const fs::path& out) { complete(out, {.ranks = {0}}); },
       {.ranks = {0, 1}}},
      {"rank 0, which --rank 1 leaves out",
       [](const fs::path& out) { complete(out, {.ranks = {0}}); },
       {.ranks = {1}}},
      {"ranks 0 and 1, of which --rank 1 makes one",
       [](const fs::path& out) {
         complete(out, {.ranks = {0, 1}});
       },
       {.ranks = {1}}},
      {"rank 0 for another machine",
       [](const fs::path& out) { complete(out, {.arch = "sm80", .ranks = {0}}); },
       {.ranks = {1}}},
      {"a result for another machine",
       [](const fs::path& out) { complete(out, {.arch = "sm80"}); }},
      {"a result of another input", [](const fs::path& out) { complete(out, {.model = "two"}); }},
      {"a manifest that was cut",
       [](const fs::path& out) {
         complete(out, {});
         fs::resize_file(out / kManifestName, 100);
       }},
      {"a run that was cut off", [](const fs::path& out) { cut_off(out, {}); }},
      {"a run for another machine", [](const fs::path& out) { cut_off(out, {.arch = "sm80"}); }},
      {"a run before the input changed",
       [](const fs::path& out) { cut_off(out, {.mtime_ns = 2}); }},
      {"a run on another input", [](const fs::path& out) { cut_off(out, {.model = "two"}); }},
      {"--force that was cut off",
       [](const fs::path& out) {
         complete(out, {.arch = "sm80"});
         cut_off(out, {.force = true});
       }},
      {"--force for another machine that was cut off",
       [](const fs::path& out) {
         complete(out, {});
         cut_off(out, {.arch = "sm80", .force = true});
       }},
      {"shard 1/2", [](const fs::path& out) { complete(out, {.shard = kSecond}); }},
      {"shard 1/2 for another machine",
       [](const fs::path& out) { complete(out, {.arch = "sm80", .shard = kSecond}); }},
      {"shard 1/2 before the input changed",
       [](const fs::path& out) { complete(out, {.mtime_ns = 2, .shard = kSecond}); }},
      {"shard 0/2", [](const fs::path& out) { complete(out, {.shard = kFirst}); }},
      {"a run of shard 0/2 for another machine",
       [](const fs::path& out) { cut_off(out, {.arch = "sm80", .shard = kFirst}); }},
      {"a run of shard 0/2 beside shard 1/2",
       [](const fs::path& out) {
         complete(out, {.shard = kSecond});
         cut_off(out, {.shard = kFirst});
       }},
      {"a result without its manifest",
       [](const fs::path& out) {
         complete(out, {});
         fs::remove(out / kManifestName);
       }},
  };
  return kCases;
}

OutRun asked_run(OutRun run, Asked asked) {
  if (asked == Asked::kShard || asked == Asked::kShardResume || asked == Asked::kShardForce) {
    run.shard = kFirst;
  }
  return run;
}

// The state of OUT; nullopt if Sibling itself refuses it.
std::optional<There> seen_there(const fs::path& out, const OutRun& run, Asked asked,
                                const SourceSeen& source) {
  Wanted wanted;
  if (asked != Asked::kUnpack) {
    wanted = {.planned = test::planned_of(run),
              .include_rest = run.include_rest,
              .shard = run.shard,
              .plan = plan_identity(test::planned_of(run)),
              .source = source};
  }
  try {
    const Sibling sibling(out, run.shard.has_value());
    return observe(sibling, wanted).there;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// What the program says when it is asked; nullopt if it goes to work. Convert changes nothing.
std::optional<Error> what_out_says(const fs::path& out, const OutRun& run, Asked asked) {
  OutputRequest request = test::request_of(run, out);
  request.look_only = true;
  request.resume = asked == Asked::kResume || asked == Asked::kShardResume;
  request.force = asked == Asked::kForce || asked == Asked::kShardForce;
  try {
    if (asked == Asked::kUnpack) {
      const Sibling sibling(out);
      const Seen seen = observe(sibling, {});
      const Answer& answer = answer_to(seen.there, asked);
      if (answer.does == Does::kRefuse) return refusal(answer, seen.named);
    } else {
      const ConversionOutput output(request, test::planned_of(run),
                                    test::UnreadSource(run.mtime_ns));
    }
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

struct ObservedStates {
  fs::path root;
  SourceSeen source{};
  std::set<There> states{};
  std::set<const Answer*> refusals{};
  std::string text{};

  void add(const OutCase& one) {
    fs::remove_all(root);
    fs::create_directories(root);
    const fs::path out = root / one.out;
    one.build(out);
    std::optional<Sibling> writer;
    if (one.busy) writer.emplace(out).make();
    std::vector<std::string> said;
    std::map<std::string, std::vector<std::string_view>> asked_of;
    for (size_t column = 0; column < kAskeds; ++column) {
      const auto asked = static_cast<Asked>(column);
      const OutRun run = asked_run(one.asks, asked);
      const std::optional<There> there = seen_there(out, run, asked, source);
      SCOPED_TRACE(fmt::format("{}, {}", one.name, text_of(asked)));
      const std::string line = said_of(there, asked, what_out_says(out, run, asked));
      if (asked_of[line].empty()) said.push_back(line);
      asked_of[line].push_back(text_of(asked));
    }
    text += one.name + "\n";
    for (const std::string& line : said) {
      text += fmt::format("  {}: {}\n", fmt::join(asked_of[line], ", "), line);
    }
  }

 private:
  // The state, and the words of a refusal. What replaces looks closer: only a refusal of its own
  // may come from it.
  std::string said_of(std::optional<There> there, Asked asked, const std::optional<Error>& error) {
    if (!there) return error ? words_of(*error) : "not refused";
    states.insert(*there);
    const Answer* answer = &answer_to(*there, asked);
    const bool damaged = error && error->kind() == ErrorKind::kInput;
    if (error && answer->does == Does::kReplace && !damaged) {
      answer = error->hint_text() == kKeepsRank.hint ? &kKeepsRank : &kKeepsForeign;
    }
    EXPECT_EQ(error.has_value(), damaged || answer->does == Does::kRefuse);
    if (!error) return std::string(text_of(*there));
    if (damaged) return words_of(*error);
    refusals.insert(answer);
    EXPECT_EQ(error->kind(), answer->kind);
    EXPECT_EQ(error->hint_text(), answer->hint);
    return fmt::format("{}\n    {}", text_of(*there), words_of(*error));
  }

  [[nodiscard]] std::string words_of(const Error& error) const {
    std::string words = error.what();
    for (size_t at = 0; (at = words.find(root.string() + "/")) != std::string::npos;) {
      words.erase(at, root.string().size() + 1);
    }
    return words;
  }
};

TEST(OutputObserved, EveryStateIsSeenAndEveryRefusalIsSaid) {
  ObservedStates seen{fs::weakly_canonical(test::scratch_path("observed"))};
  cut_off(seen.root, {});  // what the program sees of the input, its journal has
  seen.source = read_journals(sibling_of(seen.root)).at(0).source;
  fs::remove_all(sibling_of(seen.root));
  for (const OutCase& one : out_cases()) seen.add(one);
  fs::remove_all(seen.root);
  if (std::getenv("MXFP4_UPDATE_SNAPSHOTS") != nullptr) std::ofstream(kObservedFile) << seen.text;
  std::ifstream file(kObservedFile);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), seen.text);

  std::set<const Answer*> refusals{&kKeepsForeign, &kKeepsRank};
  for (size_t row = 0; row < kTheres; ++row) {
    const auto there = static_cast<There>(row);
    EXPECT_TRUE(seen.states.contains(there)) << text_of(there);
    for (size_t column = 0; column < kAskeds; ++column) {
      const Answer& answer = answer_to(there, static_cast<Asked>(column));
      if (answer.does == Does::kRefuse) refusals.insert(&answer);
    }
  }
  for (const Answer* answer : refusals)
    EXPECT_TRUE(seen.refusals.contains(answer)) << answer->words;
}

}  // namespace
}  // namespace mxfp4
