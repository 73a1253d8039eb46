// Highway on the sixteen stripes of a block, and on the lanes of a chain of blocks; plain words
// where a target has no vectors.
#include "lib/kernels/xxh3_blocks.hpp"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lib/kernels/xxh3_blocks.cpp"
#include <hwy/foreach_target.h>
// Must come after foreach_target.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace mxfp4::kernels {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR

void end_blocks(const uint64_t* sums, size_t blocks, const uint64_t* /*secret*/, uint64_t* lanes) {
  Xxh3Lanes of;
  std::copy_n(lanes, kXxh3Lanes, of.begin());
  for (; blocks > 0; --blocks, sums += kXxh3Lanes) xxh3_end_block(sums, of);
  std::ranges::copy(of, lanes);
}

void sum_blocks(const uint8_t* in, size_t blocks, const uint64_t* /*secret*/, uint64_t* sums) {
  for (size_t b = 0; b < blocks; ++b) {
    Xxh3Lanes lanes{};
    for (size_t at = 0; at < kXxh3BlockBytes; at += kXxh3StripeBytes) {
      xxh3_add_stripe(reinterpret_cast<const std::byte*>(in) + at, at / 8, lanes);
    }
    std::memcpy(sums, lanes.data(), sizeof lanes);
    in += kXxh3BlockBytes;
    sums += kXxh3Lanes;
  }
}

#else

namespace hn = hwy::HWY_NAMESPACE;

// Lanes [0, N) of all stripes of a block: the products, and apart from them the words themselves,
// which belong to the neighbouring lane.
template <class D>
void sum_lanes(D d, const uint8_t* in, const uint64_t* secret, uint64_t* sums) {
  const hn::Repartition<uint8_t, D> bytes;
  const hn::Repartition<uint32_t, D> halves;
  auto products = hn::Zero(d);
  auto words = hn::Zero(d);
  for (size_t n = 0; n < kXxh3BlockBytes / kXxh3StripeBytes; ++n) {
    const auto word = hn::BitCast(d, hn::LoadU(bytes, in + n * kXxh3StripeBytes));
    const auto key = hn::BitCast(halves, hn::Xor(word, hn::LoadU(d, secret + n)));
    products = hn::Add(products, hn::MulEven(key, hn::Shuffle2301(key)));
    words = hn::Add(words, word);
  }
  hn::StoreU(hn::Add(products, hn::Shuffle01(words)), d, sums);
}

void sum_blocks(const uint8_t* in, size_t blocks, const uint64_t* secret, uint64_t* sums) {
  const hn::CappedTag<uint64_t, kXxh3Lanes> d;
  const size_t step = hn::Lanes(d);
  for (size_t b = 0; b < blocks; ++b) {
    for (size_t lane = 0; lane < kXxh3Lanes; lane += step) {
      sum_lanes(d, in + 8 * lane, secret + lane, sums + lane);
    }
    in += kXxh3BlockBytes;
    sums += kXxh3Lanes;
  }
}

// Two vectors of lanes at a time: each operation waits for the one before, but not for the other
// vector's. The product comes in two parts, which meet the next sums in the order they are ready.
template <class D>
void end_lanes(D d, const uint64_t* sums, size_t blocks, const uint64_t* secret, uint64_t* lanes) {
  const hn::Repartition<uint32_t, D> halves;
  const size_t step = hn::Lanes(d);
  const auto prime = hn::Set(halves, kXxh3Prime);
  const auto secret_a = hn::LoadU(d, secret);
  const auto secret_b = hn::LoadU(d, secret + step);
  auto low_a = hn::LoadU(d, lanes);
  auto low_b = hn::LoadU(d, lanes + step);
  auto high_a = hn::Zero(d);
  auto high_b = hn::Zero(d);
  const auto mix = [&](auto& low, auto& high, auto key) {
    const auto lane = hn::Add(low, high);
    const auto mixed = hn::Xor(hn::Xor(lane, key), hn::ShiftRight<47>(lane));
    // The shift by 47 does not reach the upper half.
    const auto upper = hn::ShiftRight<32>(hn::Xor(lane, key));
    low = hn::MulEven(hn::BitCast(halves, mixed), prime);
    high = hn::ShiftLeft<32>(hn::MulEven(hn::BitCast(halves, upper), prime));
  };
  for (; blocks > 0; --blocks, sums += kXxh3Lanes) {
    low_a = hn::Add(low_a, hn::LoadU(d, sums));
    low_b = hn::Add(low_b, hn::LoadU(d, sums + step));
    mix(low_a, high_a, secret_a);
    mix(low_b, high_b, secret_b);
  }
  hn::StoreU(hn::Add(low_a, high_a), d, lanes);
  hn::StoreU(hn::Add(low_b, high_b), d, lanes + step);
}

void end_blocks(const uint64_t* sums, size_t blocks, const uint64_t* secret, uint64_t* lanes) {
  constexpr size_t kAtOnce = 64;  // whose sums stay in the nearest cache for the other lanes
  const hn::CappedTag<uint64_t, kXxh3Lanes / 2> d;
  const size_t step = 2 * hn::Lanes(d);
  while (blocks > 0) {
    const size_t count = std::min(blocks, kAtOnce);
    for (size_t lane = 0; lane < kXxh3Lanes; lane += step) {
      end_lanes(d, sums + lane, count, secret + lane, lanes + lane);
    }
    sums += count * kXxh3Lanes;
    blocks -= count;
  }
}

#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace mxfp4::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mxfp4::kernels {
namespace {
HWY_EXPORT(sum_blocks);
HWY_EXPORT(end_blocks);

// The default secret, as little-endian words.
constexpr std::array<uint64_t, 24> kSecret = {
    0xBE4BA423396CFEB8, 0x1CAD21F72C81017C, 0xDB979083E96DD4DE, 0x1F67B3B7A4A44072,
    0x78E5C0CC4EE679CB, 0x2172FFCC7DD05A82, 0x8E2443F7744608B8, 0x4C263A81E69035E0,
    0xCB00C391BB52283C, 0xA32E531B8B65D088, 0x4EF90DA297486471, 0xD8ACDEA946EF1938,
    0x3F349CE33F76FAA8, 0x1D4F0BC7C7BBDCF9, 0x3159B4CD4BE0518A, 0x647378D9C97E9FC8,
    0xC3EBD33483ACC5EA, 0xEB6313FAFFA081C5, 0x49DAF0B751DD0D17, 0x9E68D429265516D3,
    0xFCA1477D58BE162B, 0xCE31D07AD1B8F88F, 0x280416958F3ACB45, 0x7E404BBBCAFBD7AF,
};
constexpr size_t kEndSecret = 128;  // offset of the words that mix a finished block

}  // namespace

uint64_t xxh3_secret_word(size_t offset) noexcept {
  uint64_t word;
  std::memcpy(&word, reinterpret_cast<const std::byte*>(kSecret.data()) + offset, sizeof word);
  return word;
}

void xxh3_add_stripe(const std::byte* in, size_t secret_offset, Xxh3Lanes& lanes) noexcept {
  for (size_t i = 0; i < kXxh3Lanes; ++i) {
    uint64_t word;
    std::memcpy(&word, in + 8 * i, sizeof word);
    const uint64_t key = word ^ xxh3_secret_word(secret_offset + 8 * i);
    lanes[i] += (key & 0xFFFFFFFF) * (key >> 32);
    lanes[i ^ 1] += word;
  }
}

void xxh3_sum_blocks(const std::byte* in, size_t blocks, uint64_t* sums) noexcept {
  HWY_DYNAMIC_DISPATCH(sum_blocks)
  (reinterpret_cast<const uint8_t*>(in), blocks, kSecret.data(), sums);
}

void xxh3_end_block(const uint64_t* sums, Xxh3Lanes& lanes) noexcept {
  for (size_t i = 0; i < kXxh3Lanes; ++i) {
    const uint64_t lane = lanes[i] + sums[i];
    lanes[i] = (lane ^ lane >> 47 ^ kSecret[kEndSecret / 8 + i]) * kXxh3Prime;
  }
}

void xxh3_end_blocks(const uint64_t* sums, size_t blocks, Xxh3Lanes& lanes) noexcept {
  HWY_DYNAMIC_DISPATCH(end_blocks)(sums, blocks, kSecret.data() + kEndSecret / 8, lanes.data());
}

}  // namespace mxfp4::kernels
#endif  // HWY_ONCE
