// A schedule as short indented text, for people and for tests that compare it with a snapshot.
//
// Offsets are in bytes. `7 [64 x 2880] [2 x 720]` are the 128 offsets 7 + 2880*i + 720*j, j
// fastest. Operations that differ only in offsets share a line; where they alternate, the lines of
// a round are below its count.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "lib/steps/schedule.hpp"

namespace mxfp4 {

[[nodiscard]] std::string schedule_text(const Schedule& schedule);

// The notation above. Offsets in no such order are listed, or counted and summed up if there are
// many.
[[nodiscard]] std::string offsets_text(std::span<const int64_t> offsets);

}  // namespace mxfp4
