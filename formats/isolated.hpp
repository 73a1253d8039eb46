// Runs code that may crash on hostile input in a process of its own.
//
// Usage:  std::string bytes = run_isolated([&](const Emit& emit) { emit(parse(path)); });
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace mxfp4 {

// Hands bytes to the parent; no bytes are a sign of life.
using Emit = std::function<void(std::string_view)>;

// Forks, runs `body` in the child and returns what it emitted, in order. An Error that leaves the
// body is thrown here again. Throws Error::input, named after `what`, when the child dies, emits
// nothing for 10 seconds, or emits more than 1 GiB; the caller's process is untouched by any of it.
// The child's memory is limited to 1 GiB above the caller's, its standard streams are closed. What
// it emitted after it went astray may be anything: check it.
[[nodiscard]] std::string run_isolated(std::string_view what,
                                       const std::function<void(const Emit&)>& body);

}  // namespace mxfp4
