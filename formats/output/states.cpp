#include "formats/output/states.hpp"

#include <fmt/format.h>

#include <utility>

namespace mxfp4 {
namespace {

constexpr Answer output(std::string_view words, std::string_view hint) {
  return {Does::kRefuse, ErrorKind::kOutput, words, hint};
}
constexpr Answer usage(std::string_view words, std::string_view hint) {
  return {Does::kRefuse, ErrorKind::kUsage, words, hint};
}

constexpr Answer kBegin{Does::kBegin};
constexpr Answer kContinue{Does::kContinue};
constexpr Answer kReplace{Does::kReplace};

constexpr std::string_view kNotEmpty = "{out}: exists and is not empty";
constexpr std::string_view kBegun = "{out}: a conversion into this directory is unfinished";
constexpr std::string_view kAnotherWords =
    "{at}: holds a complete result of another conversion: {what}";

constexpr Answer kFull = output(kNotEmpty, "choose another directory");
constexpr Answer kFullResult =
    output(kNotEmpty, "--resume accepts the result; --force makes it again");
constexpr Answer kFullOther =
    output(kNotEmpty, "choose another directory; --force replaces an earlier result");
constexpr Answer kForeign = output("{out}: holds {what}, which this program did not write",
                                   "choose another directory, or take that file out of this one");
constexpr Answer kAnother = usage(kAnotherWords, "choose another directory; --force replaces it");
constexpr Answer kAnotherShard =
    output(kAnotherWords, "choose another directory; a shard replaces no result");
constexpr Answer kComplete =
    output("{out}: complete already", "--resume accepts it; a shard replaces no result");
constexpr Answer kIsBegun = output(kBegun, "--resume goes on with it");
constexpr Answer kIsBegunOtherwise =
    output(kBegun, "choose another directory; --force replaces it");
constexpr Answer kBegunOther = usage("--resume: {out}: the unfinished conversion was begun {what}",
                                     "give the same input and flags; --force starts over");
constexpr Answer kShardIsThere = output("{at}: an earlier run of this shard was here",
                                        "--resume keeps what it made, --force writes it again");
constexpr Answer kOwnOther = usage("{at}: begun {what}", "--force writes this shard again");
constexpr Answer kOtherPlan = output(
    "{at}: begun {what}",
    "all shards need the same input, flags and program; --force without --shard starts over");
constexpr Answer kShards =
    output("{at}: holds shards of a conversion",
           "finalize puts shards together; with its --shard, --resume goes on with one; --force "
           "starts over");
constexpr Answer kNoShard =
    output("{out}: a conversion into this directory, without --shard, is unfinished",
           "choose another directory; without --shard, --resume goes on here");
constexpr Answer kUnpackBegun = output(kBegun, "choose another directory");

struct StateRow {
  There there;
  std::string_view text;
  std::array<const Answer*, kAskeds> answers;
};

constexpr std::array<StateRow, kTheres> kTable{{
    {There::kNothing,
     "nothing, or only ranks or shards that this run does not make",
     {&kBegin, &kBegin, &kBegin, &kBegin, &kBegin, &kBegin, &kBegin}},
    {There::kForeign,
     "files without a manifest of this program",
     {&kFull, &kForeign, &kForeign, &kForeign, &kForeign, &kForeign, &kFull}},
    {There::kResult,
     "a complete result of this conversion",
     {&kFullResult, &kContinue, &kReplace, &kComplete, &kContinue, &kComplete, &kFull}},
    {There::kOtherResult,
     "a complete result of another conversion",
     {&kFullOther, &kAnother, &kReplace, &kAnotherShard, &kAnotherShard, &kAnotherShard, &kFull}},
    {There::kUnfinished,
     "an unfinished run of this conversion, or some of its ranks; or this shard, complete or begun",
     {&kIsBegun, &kContinue, &kReplace, &kShardIsThere, &kContinue, &kBegin, &kUnpackBegun}},
    {There::kUnfinishedOther,
     "an unfinished run, or shards, on another input or with other flags",
     {&kIsBegunOtherwise, &kBegunOther, &kReplace, &kOtherPlan, &kOtherPlan, &kOtherPlan,
      &kUnpackBegun}},
    {There::kOwnShardOther,
     "this shard, on another input or with other flags",
     {&kShards, &kShards, &kReplace, &kOwnOther, &kOwnOther, &kBegin, &kUnpackBegun}},
    {There::kOtherWay,
     "shards of a conversion, asked without --shard; a run without --shard, asked with it",
     {&kShards, &kShards, &kReplace, &kNoShard, &kNoShard, &kNoShard, &kUnpackBegun}},
}};

constexpr bool in_order() {
  for (size_t i = 0; i < kTheres; ++i) {
    if (kTable[i].there != static_cast<There>(i)) return false;
  }
  return true;
}
static_assert(in_order(), "a row is missing, or not in its place");

constexpr std::array<std::string_view, kAskeds> kAskedTexts{
    "plain", "--resume", "--force", "--shard", "--shard --resume", "--shard --force", "unpack",
};

}  // namespace

constexpr Answer kKeepsForeign = kForeign;
constexpr Answer kKeepsRank =
    output("{out}: holds {what}, which this conversion does not make",
           "choose another directory; without --rank every rank is made again");

std::string_view text_of(There there) { return kTable.at(static_cast<size_t>(there)).text; }
std::string_view text_of(Asked asked) { return kAskedTexts.at(static_cast<size_t>(asked)); }

const Answer& answer_to(There there, Asked asked) {
  return *kTable.at(static_cast<size_t>(there)).answers.at(static_cast<size_t>(asked));
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
  return error.hint(std::string(answer.hint));
}

}  // namespace mxfp4
