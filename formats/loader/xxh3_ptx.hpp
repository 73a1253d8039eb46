// kernels::xxh3_sum_blocks for an NVIDIA GPU, in PTX, which the driver compiles for the GPU at hand.
// Written by hand, since no Debian package has a compiler for it: PTX ISA 6.3, from Volta on.
//
//     xxh3_sum_blocks(const uint64_t* in, uint64_t blocks, uint64_t* sums)
//
// in: `blocks` blocks of 1024 bytes at a multiple of 8; sums: 8 words a block; memory that the GPU
// reaches. Eight threads take a block, one for each accumulator, 256 threads a group, as many groups
// as blocks / 32, rounded up. With x the word of a stripe that belongs to thread i and key = x ^
// secret, the thread adds up low(key) * high(key); the sum of x belongs to its neighbour, i ^ 1.
#pragma once

namespace mxfp4 {

inline constexpr unsigned kSumThreads = 256;
inline constexpr unsigned kSumBlocksInGroup = kSumThreads / 8;
inline constexpr const char* kSumKernel = "xxh3_sum_blocks";

inline constexpr const char* kSumPtx = R"(
.version 6.3
.target sm_70
.address_size 64

.const .align 8 .b64 secret[24] = {
  0xBE4BA423396CFEB8, 0x1CAD21F72C81017C, 0xDB979083E96DD4DE, 0x1F67B3B7A4A44072,
  0x78E5C0CC4EE679CB, 0x2172FFCC7DD05A82, 0x8E2443F7744608B8, 0x4C263A81E69035E0,
  0xCB00C391BB52283C, 0xA32E531B8B65D088, 0x4EF90DA297486471, 0xD8ACDEA946EF1938,
  0x3F349CE33F76FAA8, 0x1D4F0BC7C7BBDCF9, 0x3159B4CD4BE0518A, 0x647378D9C97E9FC8,
  0xC3EBD33483ACC5EA, 0xEB6313FAFFA081C5, 0x49DAF0B751DD0D17, 0x9E68D429265516D3,
  0xFCA1477D58BE162B, 0xCE31D07AD1B8F88F, 0x280416958F3ACB45, 0x7E404BBBCAFBD7AF};

.visible .entry xxh3_sum_blocks(.param .u64 in, .param .u64 blocks, .param .u64 sums)
{
  .reg .pred %inside, %more;
  .reg .b32 %group, %size, %thread, %stripe, %low, %high;
  .reg .b64 %number, %block, %lane, %count, %from, %key_at, %to;
  .reg .b64 %x, %key, %product, %products, %words;

  mov.u32 %group, %ctaid.x;
  mov.u32 %size, %ntid.x;
  mov.u32 %thread, %tid.x;
  mul.wide.u32 %number, %group, %size;
  cvt.u64.u32 %x, %thread;
  add.u64 %number, %number, %x;
  shr.u64 %block, %number, 3;
  and.b64 %lane, %number, 7;
  shl.b64 %lane, %lane, 3;
  ld.param.u64 %count, [blocks];
  setp.lt.u64 %inside, %block, %count;
  mov.u64 %products, 0;
  mov.u64 %words, 0;
  @!%inside bra neighbours;

  ld.param.u64 %from, [in];
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
  ld.param.u64 %to, [sums];
  cvta.to.global.u64 %to, %to;
  shl.b64 %x, %number, 3;
  add.u64 %to, %to, %x;
  st.global.u64 [%to], %products;
done:
  ret;
}
)";

}  // namespace mxfp4
