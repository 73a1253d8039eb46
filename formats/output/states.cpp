#include "formats/output/states.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace mxfp4 {
namespace {

constexpr Answer output(std::string_view words, std::string_view hint = {}) {
  return {Does::kRefuse, ErrorKind::kOutput, words, hint};
}
constexpr Answer usage(std::string_view words, std::string_view hint) {
  return {Does::kRefuse, ErrorKind::kUsage, words, hint};
}
constexpr Answer not_empty(std::string_view hint) {
  return output("{out}: exists and is not empty", hint);
}

constexpr Answer kBegin{Does::kBegin};
constexpr Answer kContinue{Does::kContinue};
constexpr Answer kReplace{Does::kReplace};

constexpr Answer kFull = not_empty("choose another directory");
constexpr Answer kFullResult = not_empty("--resume accepts the result; --force makes it again");
constexpr Answer kFullOther =
    not_empty("choose another directory; --force replaces an earlier result");
constexpr std::string_view kToShards =
    "finalize puts shards together; with its --shard, --resume goes on with one; --force replaces "
    "them";
constexpr Answer kFullShards = not_empty(kToShards);
constexpr Answer kShards = output("{at}: holds shards of a conversion", kToShards);
// The new directory of a --force that was cut off may lie beside an OUT that is empty.
constexpr Answer kIsBegun =
    output("{out}: a conversion into this directory is unfinished", "--resume goes on with it");
constexpr Answer kIsBegunOtherwise = output("{out}: a conversion into this directory is unfinished",
                                            "choose another directory; --force replaces it");
constexpr Answer kBegunOther = usage("--resume: {out}: the unfinished conversion was begun {what}",
                                     "give the same input and flags; --force starts over");
constexpr Answer kNoShard =
    output("{out}: a conversion into this directory, without --shard, is unfinished",
           "choose another directory; without --shard, --resume goes on here");
constexpr Answer kForeign = output("{out}: holds {what}, which this program did not write",
                                   "choose another directory, or take that file out of this one");
constexpr Answer kAnother = usage("{at}: holds a complete result of another conversion: {what}",
                                  "choose another directory; --force replaces it");
constexpr Answer kAnotherShard =
    output("{at}: holds a complete result of another conversion: {what}",
           "choose another directory; a shard replaces no result");
constexpr Answer kComplete =
    output("{out}: complete already", "--resume accepts it; a shard replaces no result");
constexpr Answer kOtherPlan =
    output("{at}: {what}", "all shards need the same input, flags and program");
constexpr Answer kOwnOther = usage("{at}: {what}", "--force writes this shard again");
constexpr Answer kShardIsThere = output("{at}: an earlier run of this shard was here",
                                        "--resume keeps what it made, --force writes it again");
constexpr Answer kStray =
    output("{out}: holds {what}, and no record of this conversion names it",
           "choose another directory; --force replaces what this program wrote");
constexpr Answer kStrayShard = output(
    "{out}: holds {what}, and no record of this conversion names it", "choose another directory");

struct StateRow {
  There there;
  std::string_view text;
  std::array<const Answer*, kAskeds - 2> answers;  // to conversions; unpack's: answer_to
};

// What shards do not change.
constexpr StateRow whole(There there, std::string_view text, const Answer& plain,
                         const Answer& resume, const Answer& shard) {
  return {there, text, {&plain, &resume, &kReplace, &shard, &shard, &shard}};
}

constexpr StateRow shards(There there, std::string_view text, const Answer& shard,
                          const Answer& shard_resume, const Answer& shard_force) {
  return {there, text, {&kFullShards, &kShards, &kReplace, &shard, &shard_resume, &shard_force}};
}

constexpr std::array<StateRow, kTheres> kTable{{
    {There::kNothing,
     "nothing, or only ranks that --rank leaves out",
     {&kBegin, &kBegin, &kBegin, &kBegin, &kBegin, &kBegin}},
    {There::kForeign,
     "a file that this program did not write",
     {&kFull, &kForeign, &kForeign, &kForeign, &kForeign, &kForeign}},
    {There::kResult,
     "a complete result of this conversion",
     {&kFullResult, &kContinue, &kReplace, &kComplete, &kContinue, &kComplete}},
    whole(There::kUnfinished, "an unfinished run of this conversion, or some of its ranks",
          kIsBegun, kContinue, kNoShard),
    whole(There::kUnfinishedOther, "an unfinished run on another input or with other flags",
          kIsBegunOtherwise, kBegunOther, kNoShard),
    whole(There::kOtherResult, "a complete result of another conversion", kFullOther, kAnother,
          kAnotherShard),
    {There::kPieces,
     "pieces of a blob without a record",
     {&kFullOther, &kBegin, &kReplace, &kBegin, &kBegin, &kBegin}},
    whole(There::kStray, "other files of this program that no record names", kFullOther, kStray,
          kStrayShard),
    shards(There::kShards, "other shards", kBegin, kBegin, kBegin),
    shards(There::kShardsOther, "other shards, on another input or with other flags", kOtherPlan,
           kOtherPlan, kOtherPlan),
    shards(There::kOwnShard, "this shard, complete or begun", kShardIsThere, kContinue, kBegin),
    shards(There::kOwnShardOther, "this shard, on another input or with other flags", kOwnOther,
           kOwnOther, kBegin),
}};

constexpr bool in_order() {
  for (size_t i = 0; i < kTheres; ++i) {
    if (kTable[i].there != static_cast<There>(i)) return false;
  }
  return true;
}
static_assert(in_order(), "a row is missing, or not in its place");

constexpr std::array<std::string_view, kAskeds> kAskedTexts{
    "plain",           "--resume", "--force",        "--shard", "--shard --resume",
    "--shard --force", "unpack",   "unpack --force",
};

}  // namespace

constexpr Answer kKeepsForeign = kForeign;
constexpr Answer kKeepsRank =
    output("{out}: holds {what}, which this conversion does not make",
           "choose another directory; without --rank every rank is made again");

std::string_view text_of(There there) { return kTable.at(static_cast<size_t>(there)).text; }
std::string_view text_of(Asked asked) { return kAskedTexts.at(static_cast<size_t>(asked)); }

const Answer& answer_to(There there, Asked asked) {
  // Unpack makes no difference between the things that this program wrote.
  const bool unpack = asked == Asked::kUnpack || asked == Asked::kUnpackForce;
  const bool force = asked == Asked::kUnpackForce;
  if (unpack && there > There::kForeign) return force ? kReplace : kFullOther;
  const Asked column = !unpack ? asked : force ? Asked::kForce : Asked::kPlain;
  return *kTable.at(static_cast<size_t>(there)).answers.at(static_cast<size_t>(column));
}

Error refusal(const Answer& answer, const Named& named) {
  const auto filled = [&](std::string_view text) {
    return fmt::format(fmt::runtime(text), fmt::arg("out", named.out), fmt::arg("at", named.at),
                       fmt::arg("what", named.what));
  };
  // The place that the words begin with is the error's file.
  std::string_view words = answer.words;
  std::string file;
  for (const auto& [place, path] : {std::pair{std::string_view("{out}: "), &named.out},
                                    std::pair{std::string_view("{at}: "), &named.at}}) {
    if (!file.empty() || !words.starts_with(place)) continue;
    words.remove_prefix(place.size());
    file = *path;
  }
  Error error(answer.kind, filled(words));
  if (!file.empty()) error.in_file(file);
  if (!answer.hint.empty()) error.hint(std::string(answer.hint));
  return error;
}

}  // namespace mxfp4
