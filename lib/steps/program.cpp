#include "lib/steps/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

// The gather that does `first` and then `second` at once.
GatherRows compose(const GatherRows& first, const GatherRows& second) {
  GatherRows both{first.row_bytes, {}};
  both.source.reserve(second.source.size());
  for (int64_t middle : second.source) {
    both.source.push_back(first.source[static_cast<size_t>(middle)]);
  }
  return both;
}

}  // namespace

Program& Program::then(Step step) {
  if (step_in_bytes(step) != out_bytes()) {
    throw Error::internal(fmt::format("a step of {} input bytes follows {} output bytes",
                                      step_in_bytes(step), out_bytes()));
  }
  if (!steps_.empty()) {
    const auto* last = std::get_if<GatherRows>(&steps_.back());
    const auto* next = std::get_if<GatherRows>(&step);
    if (last != nullptr && next != nullptr && last->row_bytes == next->row_bytes) {
      steps_.back() = compose(*last, *next);
      return *this;
    }
  }
  steps_.push_back(std::move(step));
  return *this;
}

int64_t Program::out_bytes() const {
  return steps_.empty() ? in_bytes_ : step_out_bytes(steps_.back());
}

int64_t Program::scratch_bytes() const {
  int64_t largest = 0;
  for (size_t i = 0; i + 1 < steps_.size(); ++i) {
    largest = std::max(largest, step_out_bytes(steps_[i]));
  }
  return 2 * largest;
}

void Program::forward(ConstBytes in, MutableBytes out, MutableBytes scratch) const {
  if (steps_.empty()) {
    if (!in.empty()) std::memcpy(out.data(), in.data(), in.size());
    return;
  }
  const size_t half = scratch.size() / 2;
  for (size_t i = 0; i < steps_.size(); ++i) {
    const bool last = i + 1 == steps_.size();
    const auto size = static_cast<size_t>(step_out_bytes(steps_[i]));
    const MutableBytes target = last ? out : scratch.subspan(i % 2 * half, size);
    step_forward(steps_[i], in, target);
    in = target;
  }
}

void Program::inverse(ConstBytes in, MutableBytes out, MutableBytes scratch) const {
  if (steps_.empty()) {
    if (!in.empty()) std::memcpy(out.data(), in.data(), in.size());
    return;
  }
  const size_t half = scratch.size() / 2;
  for (size_t i = steps_.size(); i-- > 0;) {
    const auto size = static_cast<size_t>(step_in_bytes(steps_[i]));
    const MutableBytes target = i == 0 ? out : scratch.subspan(i % 2 * half, size);
    step_inverse(steps_[i], in, target);
    in = target;
  }
}

}  // namespace mxfp4
