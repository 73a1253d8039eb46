// One range of a far file on its way: an attempt to fetch it as libcurl sees it, and what its answer
// must be. fetcher.cpp decides what follows from an attempt.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "formats/os/uninitialized_bytes.hpp"
#include "formats/remote/curl.hpp"
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

  // One attempt.
  std::string url{};  // that is asked
  void* easy = nullptr;
  void* headers = nullptr;
  std::array<char, curl::kErrorBytes> words{};
  std::map<std::string, std::string, std::less<>> fields{};
  bool looked = false;  // at the head of the answer
  bool wanted = false;  // what comes is of the file
  bool whole = false;   // all of it, though a front was asked for
  size_t other = 0;     // bytes of another answer
  size_t before = 0;    // bytes that earlier attempts got
  std::optional<Error> problem{};

  // All attempts.
  int redirects = 0;
  int failures = 0;
  int retries = 0;
  std::chrono::steady_clock::time_point not_before{};

  // The outcome, which does not change once `done`, guarded by the fetcher's mutex, is set.
  bool complete = false;
  bool absent = false;
  std::optional<Error> error{};
  bool done = false;

  [[nodiscard]] std::string field(std::string_view name) const {
    const auto at = fields.find(name);
    return at == fields.end() ? "" : at->second;
  }
};

// Prepares range.easy for an attempt to get what is missing. Throws Error::input.
void configure_attempt(FarRange& range, int64_t stall_seconds);

// Looks at the head of an answer before its first byte is taken: sets range.wanted. Throws
// Error::input if it is not the range that was asked for, or the file has changed.
void look_at_head(FarRange& range);

// The number at the front of `text`, which goes on behind it; -1 if there is none.
[[nodiscard]] int64_t take_number(std::string_view& text);

}  // namespace mxfp4
