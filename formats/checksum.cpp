#include "formats/checksum.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <new>

namespace mxfp4 {

struct Checksum::State {
  State() : xxh3(XXH3_createState()) {
    if (xxh3 == nullptr) throw std::bad_alloc();
    XXH3_128bits_reset(xxh3);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { XXH3_freeState(xxh3); }

  XXH3_state_t* xxh3;
};

Checksum::Checksum() : state_(std::make_unique<State>()) {}
Checksum::Checksum(Checksum&&) noexcept = default;
Checksum& Checksum::operator=(Checksum&&) noexcept = default;
Checksum::~Checksum() = default;

void Checksum::update(ConstBytes bytes) {
  XXH3_128bits_update(state_->xxh3, bytes.data(), bytes.size());
}

std::string Checksum::hex() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->xxh3);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace mxfp4
