// A step that runs on strips: pieces of consecutive input, small enough to stay in the second-level
// cache between what makes them and the step itself. Results equal step_forward and step_inverse,
// which are the definition.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "lib/kernels/tiles.hpp"
#include "lib/steps/step.hpp"

namespace mxfp4 {

struct StripHints {
  bool streaming = false;  // what is written goes past the caches; the caller ends that
  bool more = false;       // the next strip follows at once, from the same input
  kernels::Upcoming next;  // what the caller will read before the next strip
};

class StripWork {
 public:
  StripWork() = default;
  StripWork(const StripWork&) = delete;
  StripWork& operator=(const StripWork&) = delete;
  virtual ~StripWork() = default;

  // Bytes of input of each strip; the last may be shorter. All of the input when the step has no
  // smaller parts.
  [[nodiscard]] virtual int64_t strip_bytes() const = 0;

  // The strip whose input begins at `offset` to its places in `out`, all of the output; and back,
  // from all of the output.
  virtual void forward(int64_t offset, ConstBytes strip, StripHints hints,
                       MutableBytes out) const = 0;
  virtual void inverse(int64_t offset, ConstBytes in, StripHints hints,
                       MutableBytes strip) const = 0;

  // Prepares for strips whose rows lie `stride` bytes apart, not one after another. False where the
  // step cannot run on such.
  virtual bool spread_rows(int64_t row_bytes, int64_t stride);
  // As above, with a strip that begins at `rows` and is spread so. `next`: where the next is,
  // spread too, or null; back: its offset.
  virtual void forward_spread(int64_t offset, const std::byte* rows, const std::byte* next,
                              bool streaming, MutableBytes out) const;
  virtual void inverse_spread(int64_t offset, ConstBytes in, bool streaming,
                              std::optional<int64_t> next, std::byte* rows) const;
  // inverse_spread() would write parts of lines to memory: a strip in the caches, whose rows are
  // then copied, costs less.
  [[nodiscard]] virtual bool spread_writes_parts() const { return false; }
};

// Strips are whole multiples of `row_bytes` where the step allows it.
[[nodiscard]] std::unique_ptr<StripWork> make_strip_work(const Step& step, int64_t row_bytes);

}  // namespace mxfp4
