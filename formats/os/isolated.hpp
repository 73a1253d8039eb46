// Runs code that may crash on hostile input in a process of its own.
//
// Usage:  auto bytes = run_isolated("the parser", [&](const Emit& emit) { emit(parse(path)); });
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

namespace mxfp4 {

// Hands bytes to the parent; no bytes are a sign of life.
using Emit = std::function<void(std::string_view)>;

// How long a child may go without a sign of life. Computing is what a damaged file makes it do
// without end; waiting is what slow storage makes it do, and a loaded machine.
struct Patience {
  std::chrono::milliseconds computing{10'000};  // processor time of the child
  std::chrono::milliseconds waiting{300'000};   // of the clock on the wall
};

// Forks, runs `body` in the child and returns what it emitted, in order. An Error that leaves the
// body is thrown here again. Throws Error::input, named after `what`, when the child dies, is past
// `patience`, or emits more than 1 GiB; the caller's process is untouched by any of it. The child's
// memory is limited to 1 GiB above the caller's, its standard streams are closed. What it emitted
// after it went astray may be anything: check it.
//
// Call it before the process has other threads: a lock that one of them holds at that moment stays
// locked in the child. glibc's allocator and this project's code have none such; a sanitizer's
// allocator and a caller's own libraries may.
[[nodiscard]] std::string run_isolated(std::string_view what,
                                       const std::function<void(const Emit&)>& body,
                                       Patience patience = {});

}  // namespace mxfp4
