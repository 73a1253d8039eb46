// XXH3-128, the checksum of manifests (xxHash 0.8, seed 0, canonical big-endian hex).
#pragma once

#include <memory>
#include <string>

#include "lib/core/tensor.hpp"

namespace mxfp4 {

// A running checksum. Usage:  Checksum sum; sum.update(bytes); sum.hex();
class Checksum {
 public:
  Checksum();
  Checksum(Checksum&&) noexcept;
  Checksum& operator=(Checksum&&) noexcept;
  ~Checksum();

  void update(ConstBytes bytes);
  // 32 lower-case hex digits of everything seen so far.
  [[nodiscard]] std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace mxfp4
