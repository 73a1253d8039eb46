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
constexpr Answer kTakeOver{Does::kTakeOver};
constexpr Answer kAccept{Does::kAccept};
constexpr Answer kReplace{Does::kReplace};

constexpr Answer kNoDirectory = output("{out}: exists and is not a directory");
constexpr Answer kLocked = output("{out}: another process is writing here");
constexpr Answer kInside = output("{out}: lies inside the blob {at}", "choose another directory");
constexpr Answer kFull = not_empty("choose another directory");
constexpr Answer kFullResult = not_empty("--resume accepts the result; --force makes it again");
constexpr Answer kFullRanks = not_empty("--resume makes the ranks that are missing");
constexpr Answer kFullOther =
    not_empty("choose another directory; --force replaces an earlier result");
// The new directory of a --force that was cut off may lie beside an OUT that is empty.
constexpr Answer kIsBegun =
    output("{out}: a conversion into this directory is unfinished", "--resume goes on with it");
constexpr Answer kIsBegunOtherwise = output("{out}: a conversion into this directory is unfinished",
                                            "choose another directory; --force replaces it");
constexpr Answer kIsBegunUnpack =
    output("{out}: an unpack was cut off here", "choose another directory; --force replaces it");
constexpr Answer kFullShards =
    not_empty("finalize puts the shards together; --force replaces them");
constexpr Answer kFullShard =
    not_empty("with its --shard, --resume goes on here; --force replaces it");
constexpr Answer kForeign = output("{out}: holds {what}, which this program did not write",
                                   "choose another directory, or take that file out of this one");
constexpr Answer kAnother = usage("{at}: holds a complete result of another conversion: {what}",
                                  "choose another directory; --force replaces it");
constexpr Answer kAnotherShard =
    output("{at}: holds a complete result of another conversion: {what}",
           "choose another directory; a shard replaces no result");
constexpr Answer kComplete =
    output("{out}: complete already", "--resume accepts it; a shard replaces no result");
constexpr Answer kRankIsThere =
    output("{out}: holds {what} of this conversion, which is complete",
           "without --shard, --resume makes the ranks that are missing");
constexpr Answer kDamage{Does::kRefuse, ErrorKind::kInput, "{what}",
                         "--force makes the result again"};
constexpr Answer kDamageShard{Does::kRefuse, ErrorKind::kInput, "{what}",
                              "choose another directory; a shard replaces no result"};
constexpr Answer kBegunFlags =
    usage("--resume: {out}: the unfinished conversion was begun with other flags: {what}",
          "give the same flags; --force starts over");
constexpr Answer kBegunInput =
    usage("--resume: {out}: the unfinished conversion was begun on an input that has changed since",
          "--force starts over");
constexpr Answer kBegunOther = usage(
    "--resume: {out}: the unfinished conversion was begun with another input, by another "
    "version of this program, or with files of flags that have changed",
    "--force starts over");
constexpr Answer kUnpackCut = usage("--resume: {out}: an unpack was cut off here",
                                    "choose another directory; --force replaces it");
constexpr Answer kNoShard =
    output("{out}: a conversion into this directory, without --shard, is unfinished",
           "choose another directory; without --shard, --resume goes on here");
constexpr Answer kNoShardUnpack =
    output("{out}: an unpack was cut off here", "choose another directory");
constexpr Answer kShards = output("{at}: holds shards of a conversion",
                                  "finalize puts them together; --force replaces them");
constexpr Answer kShardBegun =
    output("{out}: holds an unfinished shard of a conversion: {what}",
           "with its --shard, --resume goes on here; --force replaces it");
constexpr Answer kOtherPlan = output("{at}: a shard of another plan: {what}",
                                     "all shards need the same input, flags and program");
constexpr Answer kOtherInput = output("{at}: the input changed since that shard was written",
                                      "run that shard again, with --force");
constexpr Answer kShardIsThere =
    output("{at}: this shard is complete already", "--resume accepts it, --force writes it again");
constexpr Answer kShardCut = output("{at}: an earlier run of this shard did not finish",
                                    "--resume goes on, --force starts again");
constexpr Answer kUnrecorded =
    output("{out}: holds {what}, but no record of an unfinished conversion",
           "choose another directory; --force replaces what this program wrote");
constexpr Answer kUnrecordedShard = output(
    "{out}: holds {what}, but no record of an unfinished conversion", "choose an empty directory");
constexpr Answer kStray =
    output("{out}: holds {what}, which this conversion does not write",
           "choose another directory; --force replaces what this program wrote");
constexpr Answer kStrayShard =
    output("{out}: holds {what}, which this conversion does not write", "choose another directory");

struct StateRow {
  There there;
  std::string_view text;
  std::array<const Answer*, kAskeds - 2> answers;  // to conversions; unpack's: answer_to
};

constexpr StateRow all(There there, std::string_view text, const Answer& answer) {
  StateRow row{there, text, {}};
  row.answers.fill(&answer);
  return row;
}

// What shards do not change.
constexpr StateRow whole(There there, std::string_view text, const Answer& plain,
                         const Answer& resume, const Answer& shard) {
  return {there, text, {&plain, &resume, &kReplace, &shard, &shard, &shard}};
}

constexpr StateRow shards(There there, std::string_view text, const Answer& resume,
                          const Answer& shard, const Answer& shard_resume,
                          const Answer& shard_force) {
  return {there, text, {&kFullShards, &resume, &kReplace, &shard, &shard_resume, &shard_force}};
}

constexpr StateRow begun_shard(There there, std::string_view text, const Answer& shard,
                               const Answer& shard_resume) {
  return {there, text, {&kFullShard, &kShardBegun, &kReplace, &shard, &shard_resume, &kBegin}};
}

constexpr std::array<StateRow, kTheres> kTable{{
    all(There::kNothing, "nothing", kBegin),
    all(There::kEmpty, "an empty directory", kBegin),
    all(There::kNotDirectory, "a file that is not a directory", kNoDirectory),
    all(There::kBusy, "a directory that another process holds", kLocked),
    all(There::kInsideBlob, "a place inside a blob", kInside),
    {There::kForeign,
     "a file that this program did not write",
     {&kFull, &kForeign, &kForeign, &kForeign, &kForeign, &kForeign}},
    {There::kResult,
     "a complete result of this conversion",
     {&kFullResult, &kAccept, &kReplace, &kComplete, &kAccept, &kComplete}},
    whole(There::kSomeRanks, "some ranks of this conversion, complete", kFullRanks, kTakeOver,
          kRankIsThere),
    {There::kOtherRanks,
     "only ranks that --rank leaves out of this conversion, complete",
     {&kTakeOver, &kTakeOver, &kTakeOver, &kRankIsThere, &kRankIsThere, &kRankIsThere}},
    whole(There::kOtherResult, "a complete result of another conversion", kFullOther, kAnother,
          kAnotherShard),
    whole(There::kDamagedManifest, "a result with a manifest that cannot be read", kFullOther,
          kDamage, kDamageShard),
    whole(There::kUnfinished, "an unfinished run of this conversion", kIsBegun, kContinue,
          kNoShard),
    whole(There::kUnfinishedFlags, "an unfinished conversion with other flags", kIsBegunOtherwise,
          kBegunFlags, kNoShard),
    whole(There::kUnfinishedInput, "an unfinished run on an input that has changed since",
          kIsBegunOtherwise, kBegunInput, kNoShard),
    whole(There::kUnfinishedOther, "another unfinished conversion", kIsBegunOtherwise, kBegunOther,
          kNoShard),
    whole(There::kUnfinishedUnpack, "an unfinished unpack", kIsBegunUnpack, kUnpackCut,
          kNoShardUnpack),
    shards(There::kShards, "other shards of this conversion", kShards, kBegin, kBegin, kBegin),
    shards(There::kShardsAndWhole, "shards, and an unfinished conversion without --shard", kShards,
           kNoShard, kNoShard, kNoShard),
    shards(There::kShardsOther, "shards of another conversion", kShards, kOtherPlan, kOtherPlan,
           kOtherPlan),
    shards(There::kShardsInput, "another shard, on an input that has changed since", kShards,
           kOtherInput, kOtherInput, kOtherInput),
    shards(There::kOwnShardInput, "this shard, on an input that has changed since", kShards,
           kOtherInput, kOtherInput, kBegin),
    shards(There::kOwnShard, "this shard, complete", kShards, kShardIsThere, kAccept, kBegin),
    begun_shard(There::kOwnBegun, "an unfinished run of this shard", kShardCut, kContinue),
    begun_shard(There::kOwnBegunFlags, "an unfinished run of this shard with other flags",
                kShardCut, kBegunFlags),
    begun_shard(There::kOwnBegunInput,
                "an unfinished run of this shard on an input that has changed since", kShardCut,
                kBegunInput),
    begun_shard(There::kOwnBegunOther, "an unfinished run of this shard of another conversion",
                kShardCut, kBegunOther),
    begun_shard(There::kShardBegun, "unfinished runs of other shards", kBegin, kBegin),
    {There::kPieces,
     "pieces of a blob without a record",
     {&kFullOther, &kBegin, &kReplace, &kBegin, &kBegin, &kBegin}},
    whole(There::kNoRecord, "other files of this program without a record", kFullOther, kUnrecorded,
          kUnrecordedShard),
    whole(There::kStray, "layer files that this conversion does not write", kFullOther, kStray,
          kStrayShard),
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
