#include "lib/steps/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "lib/core/error.hpp"
#include "lib/kernels/copy.hpp"
#include "lib/steps/bands.hpp"
#include "lib/steps/stage.hpp"

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

template <class Bytes>
Bytes band_of(Bytes all, int64_t band, int64_t bands) {
  const size_t size = all.size() / static_cast<size_t>(bands);
  return all.subspan(static_cast<size_t>(band) * size, size);
}

void copy_all(ConstBytes in, bool streaming, MutableBytes out) {
  kernels::copy_bytes(in.data(), static_cast<int64_t>(in.size()), {streaming, nullptr}, out.data());
  if (streaming) kernels::finish_streaming();
}

}  // namespace

Program::Program(int64_t bytes)
    : in_bytes_(bytes), stages_(std::make_shared<const std::vector<Stage>>()) {}

Program& Program::then(Step step) {
  if (step_in_bytes(step) != out_bytes()) {
    throw Error::internal(fmt::format("a step of {} input bytes follows {} output bytes",
                                      step_in_bytes(step), out_bytes()));
  }
  steps_.push_back(std::move(step));
  std::vector<Stage> stages = Stage::join(steps_);
  bands_ = 1;
  if (stages.size() > 1) {
    const Bands bands = cut_into_bands(steps_);
    bands_ = bands.count;
    if (bands_ > 1) stages = Stage::join(bands.steps);
  }
  stages_ = std::make_shared<const std::vector<Stage>>(std::move(stages));
  return *this;
}

int64_t Program::out_bytes() const {
  return steps_.empty() ? in_bytes_ : step_out_bytes(steps_.back());
}

int64_t Program::strip_bytes() const {
  int64_t largest = 0;
  for (const Stage& stage : *stages_) largest = std::max(largest, stage.scratch_bytes());
  return largest;
}

int64_t Program::scratch_bytes() const {
  int64_t between = 0;
  for (size_t i = 0; i + 1 < stages_->size(); ++i) {
    between = std::max(between, (*stages_)[i].out_bytes());
  }
  return strip_bytes() + 2 * between;
}

void Program::forward(ConstBytes in, MutableBytes out, MutableBytes scratch) const {
  const bool streaming = out.size() >= kStreamBytes;
  const std::vector<Stage>& stages = *stages_;
  if (stages.empty()) return copy_all(in, streaming, out);
  const Scratch parts = split(scratch, strip_bytes());
  for (int64_t band = 0; band < bands_; ++band) {
    ConstBytes from = band_of(in, band, bands_);
    for (size_t i = 0; i < stages.size(); ++i) {
      const bool last = i + 1 == stages.size();
      const auto size = static_cast<size_t>(stages[i].out_bytes());
      const MutableBytes to = last ? band_of(out, band, bands_) : parts.between[i % 2].first(size);
      const bool more = i == 0 && band + 1 < bands_;
      stages[i].forward(from, {last && streaming, more}, to, parts.strip);
      from = to;
    }
  }
}

void Program::inverse(ConstBytes in, MutableBytes out, MutableBytes scratch) const {
  const bool streaming = out.size() >= kStreamBytes;
  const std::vector<Stage>& stages = *stages_;
  if (stages.empty()) return copy_all(in, streaming, out);
  const Scratch parts = split(scratch, strip_bytes());
  for (int64_t band = 0; band < bands_; ++band) {
    ConstBytes from = band_of(in, band, bands_);
    for (size_t i = stages.size(); i-- > 0;) {
      const bool last = i == 0;
      const auto size = static_cast<size_t>(stages[i].in_bytes());
      const MutableBytes to = last ? band_of(out, band, bands_) : parts.between[i % 2].first(size);
      const bool more = i + 1 == stages.size() && band + 1 < bands_;
      stages[i].inverse(from, {last && streaming, more}, to, parts.strip);
      from = to;
    }
  }
}

}  // namespace mxfp4
