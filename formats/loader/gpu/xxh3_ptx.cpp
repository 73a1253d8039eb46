#include "formats/loader/gpu/xxh3_ptx.hpp"

#include <fmt/format.h>

#include "lib/kernels/xxh3_blocks.hpp"

namespace mxfp4 {
namespace {

constexpr size_t kSecretWords = 24;

constexpr const char* kTarget = R"(
.version 6.3
.target sm_70
.address_size 64
)";

constexpr const char* kSumEntry = R"(
{
  .reg .pred %inside, %more;
  .reg .b32 %group, %size, %thread, %stripe, %low, %high;
  .reg .b64 %number, %block, %lane, %count, %from, %key_at, %to;
  .reg .b64 %piece, %x, %key, %product, %products, %words;

  mov.u32 %group, %ctaid.y;
  mul.wide.u32 %piece, %group, 24;
  mov.b64 %x, pieces;
  add.u64 %piece, %piece, %x;
  mov.u32 %group, %ctaid.x;
  mov.u32 %size, %ntid.x;
  mov.u32 %thread, %tid.x;
  mul.wide.u32 %number, %group, %size;
  cvt.u64.u32 %x, %thread;
  add.u64 %number, %number, %x;
  shr.u64 %block, %number, 3;
  and.b64 %lane, %number, 7;
  shl.b64 %lane, %lane, 3;
  ld.param.u64 %count, [%piece+8];
  setp.lt.u64 %inside, %block, %count;
  mov.u64 %products, 0;
  mov.u64 %words, 0;
  @!%inside bra neighbours;

  ld.param.u64 %from, [%piece];
  cvta.to.global.u64 %from, %from;
  shl.b64 %x, %block, 10;
  add.u64 %from, %from, %x;
  add.u64 %from, %from, %lane;
  mov.u64 %key_at, secret;
  add.u64 %key_at, %key_at, %lane;
  mov.u32 %stripe, 0;
stripes:
  ld.global.u64 %x, [%from];
  ld.const.u64 %key, [%key_at];
  xor.b64 %key, %key, %x;
  mov.b64 {%low, %high}, %key;
  mul.wide.u32 %product, %low, %high;
  add.u64 %products, %products, %product;
  add.u64 %words, %words, %x;
  add.u64 %from, %from, 64;
  add.u64 %key_at, %key_at, 8;
  add.u32 %stripe, %stripe, 1;
  setp.lt.u32 %more, %stripe, 16;
  @%more bra stripes;

neighbours:
  mov.b64 {%low, %high}, %words;
  shfl.sync.bfly.b32 %low, %low, 1, 31, -1;
  shfl.sync.bfly.b32 %high, %high, 1, 31, -1;
  mov.b64 %words, {%low, %high};
  add.u64 %products, %products, %words;
  @!%inside bra done;
  ld.param.u64 %to, [%piece+16];
  cvta.to.global.u64 %to, %to;
  shl.b64 %x, %number, 3;
  add.u64 %to, %to, %x;
  st.global.u64 [%to], %products;
done:
  ret;
}
)";

}  // namespace

std::string sum_ptx() {
  std::string secret;
  for (size_t i = 0; i < kSecretWords; ++i) {
    secret += fmt::format("{}0x{:016X}", i == 0 ? "" : ", ", kernels::xxh3_secret_word(8 * i));
  }
  return fmt::format(
      "{}\n.const .align 8 .b64 secret[{}] = {{{}}};\n"
      ".visible .entry xxh3_sum_blocks(.param .align 8 .b8 pieces[{}]){}",
      kTarget, kSecretWords, secret, kSumPieces * sizeof(SumPiece), kSumEntry);
}

}  // namespace mxfp4
