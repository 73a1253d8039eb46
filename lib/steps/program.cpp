#include "lib/steps/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "lib/core/error.hpp"
#include "lib/steps/lower.hpp"
#include "lib/steps/run_schedule.hpp"

namespace mxfp4 {

struct Program::Schedules {
  std::once_flag forward_made;
  std::once_flag inverse_made;
  Schedule forward;
  Schedule inverse;
};

Program::Program(int64_t bytes) : in_bytes_(bytes), schedules_(std::make_shared<Schedules>()) {}

Program& Program::then(Step step) {
  if (step_in_bytes(step) != out_bytes()) {
    throw Error::internal(fmt::format("a step of {} input bytes follows {} output bytes",
                                      step_in_bytes(step), out_bytes()));
  }
  steps_.push_back(std::move(step));
  schedules_ = std::make_shared<Schedules>();
  return *this;
}

int64_t Program::out_bytes() const {
  return steps_.empty() ? in_bytes_ : step_out_bytes(steps_.back());
}

const Schedule& Program::schedule(Direction direction) const {
  const bool forward = direction == Direction::kForward;
  Schedule& schedule = forward ? schedules_->forward : schedules_->inverse;
  std::call_once(forward ? schedules_->forward_made : schedules_->inverse_made,
                 [&] { schedule = lower(steps_, in_bytes_, direction); });
  return schedule;
}

int64_t Program::scratch_bytes(Direction direction) const {
  return schedule(direction).scratch_bytes();
}

int64_t Program::scratch_bytes() const {
  return std::max(scratch_bytes(Direction::kForward), scratch_bytes(Direction::kInverse));
}

void Program::forward(ConstBytes in, MutableBytes out, MutableBytes scratch) const {
  run_schedule(schedule(Direction::kForward), in, out, scratch);
}

void Program::inverse(ConstBytes in, MutableBytes out, MutableBytes scratch) const {
  run_schedule(schedule(Direction::kInverse), in, out, scratch);
}

}  // namespace mxfp4
