// The share of this machine that a conversion, its inverse or a comparison may use, and its
// callbacks.
#pragma once

#include <cstdint>
#include <functional>

namespace mxfp4 {

struct RunLimits {
  int threads = 1;
  int64_t memory = int64_t{256} << 20;  // bytes for buffers
  bool memory_fixed = false;            // `memory` is the user's; else one job may take more
};

struct RunHooks {
  // So many more bytes are done. One call at a time.
  std::function<void(int64_t bytes)> progress = [](int64_t) {};
  // Called between jobs; may throw to stop.
  std::function<void()> check_stop = [] {};
};

}  // namespace mxfp4
