#include "lib/steps/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/core/error.hpp"
#include "lib/steps/lower.hpp"
#include "lib/steps/run_schedule.hpp"

namespace mxfp4 {

Program::Program(int64_t bytes) : in_bytes_(bytes) { lower_steps(); }

Program& Program::then(Step step) {
  if (step_in_bytes(step) != out_bytes()) {
    throw Error::internal(fmt::format("a step of {} input bytes follows {} output bytes",
                                      step_in_bytes(step), out_bytes()));
  }
  steps_.push_back(std::move(step));
  lower_steps();
  return *this;
}

void Program::lower_steps() {
  forward_ = std::make_shared<const Schedule>(lower(steps_, in_bytes_, Direction::kForward));
  inverse_ = std::make_shared<const Schedule>(lower(steps_, in_bytes_, Direction::kInverse));
}

int64_t Program::out_bytes() const {
  return steps_.empty() ? in_bytes_ : step_out_bytes(steps_.back());
}

const Schedule& Program::schedule(Direction direction) const {
  return direction == Direction::kForward ? *forward_ : *inverse_;
}

int64_t Program::scratch_bytes() const {
  return std::max(forward_->scratch_bytes(), inverse_->scratch_bytes());
}

void Program::forward(ConstBytes in, MutableBytes out, MutableBytes scratch) const {
  run_schedule(*forward_, in, out, scratch);
}

void Program::inverse(ConstBytes in, MutableBytes out, MutableBytes scratch) const {
  run_schedule(*inverse_, in, out, scratch);
}

}  // namespace mxfp4
