// Runs code that may crash on hostile input in a child process.
//
// Usage:  auto bytes = run_in_child("the parser", [&](const Emit& emit) { emit(parse(path)); });
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

namespace mxfp4 {

// Hands bytes to the parent; a call without bytes is only a sign of life.
using Emit = std::function<void(std::string_view)>;

// How long a child may go without a sign of life. The limit of processor time is short because a
// damaged file can make a child compute without end; slow storage and a loaded machine only make it
// wait.
struct ChildLimits {
  std::chrono::milliseconds cpu_time{10'000};  // processor time of the child
  std::chrono::milliseconds wall_time{300'000};
};

// Forks, runs `body` in the child and returns what it emitted, in order. An Error that leaves the
// body is thrown here again, as Error::input or Error::internal. Throws Error::input, named after
// `what`, if the child dies, exceeds `limits`, or emits more than 1 GiB. The child's memory is
// limited to 1 GiB above the caller's, or by the caller's own limit, under which it throws
// std::bad_alloc if the child has no memory; its standard streams are /dev/null. A damaged file may
// have made the child emit anything, so check what it emitted.
//
// Call it before the process has other threads: a lock that one of them holds at that moment stays
// locked in the child. glibc's allocator and this project's code hold no such lock; a sanitizer's
// allocator and a caller's own libraries may.
[[nodiscard]] std::string run_in_child(std::string_view what,
                                       const std::function<void(const Emit&)>& body,
                                       ChildLimits limits = {});

}  // namespace mxfp4
