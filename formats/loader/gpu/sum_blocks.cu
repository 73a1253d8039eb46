// Source of sum_blocks.ptx: see gpu_kernel.h.
#include "formats/loader/gpu/gpu_kernel.h"

// XXH3's default secret, of its specification.
GPU_CONSTANT unsigned long long kSecret[24] = {
    0xBE4BA423396CFEB8, 0x1CAD21F72C81017C, 0xDB979083E96DD4DE, 0x1F67B3B7A4A44072,
    0x78E5C0CC4EE679CB, 0x2172FFCC7DD05A82, 0x8E2443F7744608B8, 0x4C263A81E69035E0,
    0xCB00C391BB52283C, 0xA32E531B8B65D088, 0x4EF90DA297486471, 0xD8ACDEA946EF1938,
    0x3F349CE33F76FAA8, 0x1D4F0BC7C7BBDCF9, 0x3159B4CD4BE0518A, 0x647378D9C97E9FC8,
    0xC3EBD33483ACC5EA, 0xEB6313FAFFA081C5, 0x49DAF0B751DD0D17, 0x9E68D429265516D3,
    0xFCA1477D58BE162B, 0xCE31D07AD1B8F88F, 0x280416958F3ACB45, 0x7E404BBBCAFBD7AF};

struct SumPieces {  // what one launch sums: kSumPieces of SumPiece
  struct {
    unsigned long long in, blocks, sums;
  } piece[16];
};

// kernels::xxh3_sum_blocks: each y of the grid is a piece, and eight threads take a block of it,
// one for each accumulator. With x the word of a stripe that belongs to a thread and key = x ^
// secret, the thread adds up low(key) * high(key), and the neighbour's x.
GPU_KERNEL mxfp4_sum_blocks(struct SumPieces pieces) {
  unsigned long long number = (unsigned long long)GROUP_X * THREADS + THREAD;
  unsigned long long block = number / 8;
  unsigned lane = (unsigned)number % 8;
  if (block >= pieces.piece[GROUP_Y].blocks) return;
  const unsigned long long* words = (const unsigned long long*)pieces.piece[GROUP_Y].in + 128 * block;
  unsigned long long sum = 0;
  for (unsigned stripe = 0; stripe < 16; ++stripe) {
    unsigned long long key = words[8 * stripe + lane] ^ kSecret[stripe + lane];
    sum += (key & 0xFFFFFFFF) * (key >> 32) + words[8 * stripe + (lane ^ 1)];
  }
  ((unsigned long long*)pieces.piece[GROUP_Y].sums)[number] = sum;
}
