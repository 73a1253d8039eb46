// The GPU's kernels, in C. `scripts/make-gpu-kernels` compiles them to gpu_kernels_ptx.hpp, for
// every NVIDIA GPU from Volta on; tests/capi/fake_cuda.c runs them on CPUs. What a group and a
// thread are called is the includer's: GPU_KERNEL, GROUP_X, GROUP_Y, GROUPS_X, THREAD, THREADS.
#include "lib/kernels/gather_source.h"

#ifdef __CUDA__
#define GPU_KERNEL extern "C" __attribute__((global)) void
#define GPU_CONSTANT static __attribute__((constant)) const
#define GROUP_X __nvvm_read_ptx_sreg_ctaid_x()
#define GROUP_Y __nvvm_read_ptx_sreg_ctaid_y()
#define GROUPS_X __nvvm_read_ptx_sreg_nctaid_x()
#define THREAD __nvvm_read_ptx_sreg_tid_x()
#define THREADS __nvvm_read_ptx_sreg_ntid_x()
#endif

// A program on granules (lib/steps/gather_plan.hpp): each y of the grid is one, `in_step` and
// `out_step` bytes from the one before. `out_bytes` is the caller's: no word of a plan moves the
// last byte that is written.
GPU_KERNEL mxfp4_gather(const gather_u32* plan, const unsigned char* in, gather_u64 in_step,
                        unsigned char* out, gather_u64 out_step, gather_u32 out_bytes) {
  if (plan[kGatherOutBytes] != out_bytes) return;
  in += GROUP_Y * in_step;
  out += GROUP_Y * out_step;
  gather_u32 at_once = gather_at_once(plan);
  gather_u32 words = (out_bytes + 3) / 4;
  gather_u32 step = GROUPS_X * THREADS * at_once;
  for (gather_u32 word = (GROUP_X * THREADS + THREAD) * at_once; word < words; word += step) {
    gather_words(plan, in, word, out);
  }
}

// XXH3's default secret, of its specification.
GPU_CONSTANT gather_u64 kSecret[24] = {
    0xBE4BA423396CFEB8, 0x1CAD21F72C81017C, 0xDB979083E96DD4DE, 0x1F67B3B7A4A44072,
    0x78E5C0CC4EE679CB, 0x2172FFCC7DD05A82, 0x8E2443F7744608B8, 0x4C263A81E69035E0,
    0xCB00C391BB52283C, 0xA32E531B8B65D088, 0x4EF90DA297486471, 0xD8ACDEA946EF1938,
    0x3F349CE33F76FAA8, 0x1D4F0BC7C7BBDCF9, 0x3159B4CD4BE0518A, 0x647378D9C97E9FC8,
    0xC3EBD33483ACC5EA, 0xEB6313FAFFA081C5, 0x49DAF0B751DD0D17, 0x9E68D429265516D3,
    0xFCA1477D58BE162B, 0xCE31D07AD1B8F88F, 0x280416958F3ACB45, 0x7E404BBBCAFBD7AF};

struct SumPieces {  // what one launch sums: kSumPieces of SumPiece
  struct {
    gather_u64 in, blocks, sums;
  } piece[16];
};

// kernels::xxh3_sum_blocks: each y of the grid is a piece, and eight threads take a block of it,
// one for each accumulator. With x the word of a stripe that belongs to a thread and key = x ^
// secret, the thread adds up low(key) * high(key), and the neighbour's x.
GPU_KERNEL mxfp4_sum_blocks(struct SumPieces pieces) {
  gather_u64 number = (gather_u64)GROUP_X * THREADS + THREAD;
  gather_u64 block = number / 8;
  gather_u32 lane = (gather_u32)number % 8;
  if (block >= pieces.piece[GROUP_Y].blocks) return;
  const gather_u64* words = (const gather_u64*)pieces.piece[GROUP_Y].in + 128 * block;
  gather_u64 sum = 0;
  for (gather_u32 stripe = 0; stripe < 16; ++stripe) {
    gather_u64 key = words[8 * stripe + lane] ^ kSecret[stripe + lane];
    sum += (key & 0xFFFFFFFF) * (key >> 32) + words[8 * stripe + (lane ^ 1)];
  }
  ((gather_u64*)pieces.piece[GROUP_Y].sums)[number] = sum;
}
