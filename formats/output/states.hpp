// The table of OUT: what is there x what is asked gives one answer, and each refusal has one
// wording. observe() says what is there; nothing else decides what may happen to OUT. Printed whole
// in testdata/output/states.txt.
//
// Other questions are asked elsewhere. May OUT be written at all (a file, a place inside a blob,
// another process, a mount point): Sibling. Is it complete enough to be read:
// unfinished.hpp. Are all shards there and whole: finalize.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "lib/core/error.hpp"

namespace mxfp4 {

// What is in OUT and, if it is unfinished, beside it. "This conversion" has the plan of the run
// that asks: its input, its flags and its program.
enum class There : uint8_t {
  kNothing,
  kForeign,
  kResult,
  kOtherResult,
  kUnfinished,
  kUnfinishedOther,
  kOwnShardOther,
  kOtherWay,
};
inline constexpr size_t kTheres = static_cast<size_t>(There::kOtherWay) + 1;

enum class Asked : uint8_t {
  kPlain,
  kResume,
  kForce,
  kShard,
  kShardResume,
  kShardForce,
  kUnpack,
};
inline constexpr size_t kAskeds = static_cast<size_t>(Asked::kUnpack) + 1;

enum class Does : uint8_t {
  kBegin,
  kContinue,  // keeps what is whole of this conversion, in OUT and beside it, and makes the rest
  kReplace,   // makes everything; what is in OUT stays until then
  kRefuse,
};

struct Answer {
  Does does = Does::kRefuse;
  ErrorKind kind = ErrorKind::kOutput;
  std::string_view words{};  // of a refusal; {out}, {at} and {what} are filled in
  std::string_view hint{};
};

// "a complete result of this conversion", "--shard --resume": for the printed table.
[[nodiscard]] std::string_view text_of(There there);
[[nodiscard]] std::string_view text_of(Asked asked);

[[nodiscard]] const Answer& answer_to(There there, Asked asked);

// What a refusal names.
struct Named {
  std::string out;   // OUT, as it was given
  std::string at;    // the blob, or the directory of the unfinished run
  std::string what;  // a file, flags that differ, a rank
};
[[nodiscard]] Error refusal(const Answer& answer, const Named& named);

// Answers that a closer look gives to Does::kReplace.
extern const Answer kKeepsForeign;  // no manifest names a file, or it was edited
extern const Answer kKeepsRank;     // a rank is complete, and this conversion does not make it

}  // namespace mxfp4
