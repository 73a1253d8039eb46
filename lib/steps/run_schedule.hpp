// Runs a schedule: a loop over its operations that decides nothing.
#pragma once

#include "lib/steps/schedule.hpp"

namespace mxfp4 {

// `in`, `out` and `scratch` have the schedule's in_bytes, out_bytes and at least scratch_bytes();
// none overlap. Thread-safe. The output is complete for every thread when the call returns.
void run_schedule(const Schedule& schedule, ConstBytes in, MutableBytes out, MutableBytes scratch);

}  // namespace mxfp4
