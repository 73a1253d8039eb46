// A range of a far file, and one attempt to fetch or send it: what libcurl asks, what is answered.
// fetcher.cpp decides what follows from an attempt.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>

#include "formats/os/positioned_file.hpp"
#include "formats/os/uninitialized_bytes.hpp"
#include "formats/remote/far_file.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {

struct FarRange {
  std::shared_ptr<FarFile> file;
  bool front = false;  // what is wanted is the first `size` bytes, or all of a shorter file
  int64_t begin = 0;
  int64_t size = 0;
  UninitializedBytes bytes{};
  size_t got = 0;

  // What is sent in place of asking: the range of `body`. The answer's text and ETag.
  std::string method = "GET";
  std::string condition{};  // "if-none-match:*": if that is not so, `absent`
  ReadFar body{};
  std::string answer{}, tag{};
  bool again = false;  // an answer may have been lost of what can be done only once

  // The outcome, which does not change once `done`, guarded by the fetcher's mutex, is set.
  bool absent = false;
  std::exception_ptr failure{};
  bool done = false;
};

// What an attempt came to.
struct FarAnswer {
  bool complete = false;    // the range is whole
  int result = 0;           // libcurl's
  std::string words{};      // for that
  long status = 0;          // 0: the server did not answer
  std::string redirect{};   // where to
  int64_t retry_after = 0;  // seconds
};

// Asks `url` for what is missing of the range. What is learnt of a file comes with its front. Throws
// Error::input if the answer is not what was asked for, or the file has changed.
[[nodiscard]] FarAnswer attempt(void* easy, FarRange& range, const std::string& url,
                                int64_t stall_seconds, const std::atomic<bool>& stop);

// The number at the front of `text`, which goes on behind it; -1 if there is none.
[[nodiscard]] int64_t take_number(std::string_view& text);

}  // namespace mxfp4
