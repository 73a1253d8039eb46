// The 128 x 4 tile order of block scales that the Blackwell tensor cores read, used by FlashInfer
// (0.6.11.post2 quantization.cu, block_scale_interleave_kernel) and by Triton's Blackwell scales.
//
// One expert's rows R x columns C of bytes, zero padded to Rp = up(R, 128) and Cp = up(C, 4):
//
//   position of (r, c) = ((r/128)*(Cp/4) + c/4)*512 + (r%32)*16 + ((r%128)/32)*4 + c%4
//
// Example, R = 128, C = 8: byte (33, 5) goes to 1*512 + 1*16 + 1*4 + 1 = 533.
#pragma once

#include <cstdint>

#include "lib/steps/program.hpp"

namespace mxfp4 {

// Appends the padding (where needed) and the permutation; `program` puts out rows x columns bytes.
// Its output then has round_up(rows, 128) * round_up(columns, 4) bytes.
Program& swizzle_128x4(Program& program, int64_t rows, int64_t columns);

}  // namespace mxfp4
