// A short list of steps that turns one expert's loaded bytes into one output's bytes, and back.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/steps/step.hpp"

namespace mxfp4 {

struct Schedule;  // of lib/steps/schedule.hpp
enum class Direction : uint8_t;

class Program {
 public:
  // The identity on `bytes` bytes.
  explicit Program(int64_t bytes = 0);

  // Appends a step. Throws Error::internal when its input size is not the program's output size.
  Program& then(Step step);

  [[nodiscard]] int64_t in_bytes() const { return in_bytes_; }
  [[nodiscard]] int64_t out_bytes() const;
  [[nodiscard]] bool is_identity() const { return steps_.empty(); }
  [[nodiscard]] const std::vector<Step>& steps() const { return steps_; }
  // How forward() or inverse() runs. Made when first asked for, because tables of many rows take
  // memory, and a conversion needs one direction. Thread-safe.
  [[nodiscard]] const Schedule& schedule(Direction direction) const;
  // Bytes of scratch that forward or inverse needs; without a direction, the larger number.
  [[nodiscard]] int64_t scratch_bytes(Direction direction) const;
  [[nodiscard]] int64_t scratch_bytes() const;

  // `in`, `out` and `scratch` have in_bytes(), out_bytes() and at least scratch_bytes(direction)
  // bytes and do not overlap. Thread-safe.
  void forward(ConstBytes in, MutableBytes out, MutableBytes scratch) const;
  // From out_bytes() bytes back to in_bytes().
  void inverse(ConstBytes in, MutableBytes out, MutableBytes scratch) const;

 private:
  struct Schedules;

  int64_t in_bytes_;
  std::vector<Step> steps_;               // the definition,
  std::shared_ptr<Schedules> schedules_;  // and how it runs; copies of the same steps share it
};

}  // namespace mxfp4
