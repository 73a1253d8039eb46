#include "lib/steps/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/core/error.hpp"
#include "lib/kernels/copy.hpp"

namespace mxfp4 {
namespace {

// Outputs from here on are written past the caches: they would not stay there until they are used.
constexpr size_t kStreamBytes = size_t{4} << 20;

// The parts of a program's scratch.
struct Scratch {
  MutableBytes strip;
  std::array<MutableBytes, 2> between;
};

Scratch split(MutableBytes scratch, int64_t strip_bytes) {
  const auto strip = static_cast<size_t>(strip_bytes);
  const size_t half = (scratch.size() - strip) / 2;
  return {scratch.first(strip),
          {scratch.subspan(strip, half), scratch.subspan(strip + half, half)}};
}

void copy_all(ConstBytes in, bool streaming, MutableBytes out) {
  kernels::copy_bytes(in.data(), static_cast<int64_t>(in.size()), {streaming, nullptr}, out.data());
  if (streaming) kernels::finish_streaming();
}

}  // namespace

Program& Program::then(Step step) {
  if (step_in_bytes(step) != out_bytes()) {
    throw Error::internal(fmt::format("a step of {} input bytes follows {} output bytes",
                                      step_in_bytes(step), out_bytes()));
  }
  steps_.push_back(std::move(step));
  stages_ = Stage::join(steps_);
  return *this;
}

int64_t Program::out_bytes() const {
  return steps_.empty() ? in_bytes_ : step_out_bytes(steps_.back());
}

int64_t Program::strip_bytes() const {
  int64_t largest = 0;
  for (const Stage& stage : stages_) largest = std::max(largest, stage.scratch_bytes());
  return largest;
}

int64_t Program::scratch_bytes() const {
  int64_t between = 0;
  for (size_t i = 0; i + 1 < stages_.size(); ++i) {
    between = std::max(between, stages_[i].out_bytes());
  }
  return strip_bytes() + 2 * between;
}

void Program::forward(ConstBytes in, MutableBytes out, MutableBytes scratch) const {
  const bool streaming = out.size() >= kStreamBytes;
  if (stages_.empty()) return copy_all(in, streaming, out);
  const Scratch parts = split(scratch, strip_bytes());
  for (size_t i = 0; i < stages_.size(); ++i) {
    const bool last = i + 1 == stages_.size();
    const auto size = static_cast<size_t>(stages_[i].out_bytes());
    const MutableBytes target = last ? out : parts.between[i % 2].first(size);
    stages_[i].forward(in, last && streaming, target, parts.strip);
    in = target;
  }
}

void Program::inverse(ConstBytes in, MutableBytes out, MutableBytes scratch) const {
  const bool streaming = out.size() >= kStreamBytes;
  if (stages_.empty()) return copy_all(in, streaming, out);
  const Scratch parts = split(scratch, strip_bytes());
  for (size_t i = stages_.size(); i-- > 0;) {
    const auto size = static_cast<size_t>(stages_[i].in_bytes());
    const MutableBytes target = i == 0 ? out : parts.between[i % 2].first(size);
    stages_[i].inverse(in, i == 0 && streaming, target, parts.strip);
    in = target;
  }
}

}  // namespace mxfp4
