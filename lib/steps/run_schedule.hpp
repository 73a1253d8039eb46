// Runs a schedule: a loop over its operations that decides nothing.
#pragma once

#include <functional>

#include "lib/steps/schedule.hpp"

namespace mxfp4 {

// Called before bytes [begin, end) of the input are read, perhaps not for the first time. Returns a
// pointer to bytes [begin, end), valid until the next call. So an input may be read from a file
// while a schedule runs, and each byte is used while it is in the caches.
using BringInput = std::function<const std::byte*(int64_t begin, int64_t end)>;

// `in`, `out` and `scratch` have the schedule's in_bytes, out_bytes and at least scratch_bytes();
// none overlap. Thread-safe. The output is complete for every thread when the call returns.
// `bring`, if not null, brings the input of a forward schedule in place of `in`, of which only the
// size counts. Throws what it throws.
void run_schedule(const Schedule& schedule, ConstBytes in, MutableBytes out, MutableBytes scratch,
                  const BringInput* bring = nullptr);

}  // namespace mxfp4
