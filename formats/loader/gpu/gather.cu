// Source of gather.ptx: see gpu_kernel.h.
#include "formats/loader/gpu/gpu_kernel.h"
#include "lib/kernels/gather_source.h"

// A program on granules (lib/steps/gather_plan.hpp), `in_step` and `out_step` bytes from one to the
// next: each y of the grid is `together` of them. `out_bytes` is the caller's: no word of a plan moves
// the last byte that is written.
GPU_KERNEL mxfp4_gather(const gather_u32* plan, const unsigned char* in, gather_u64 in_step,
                        unsigned char* out, gather_u64 out_step, gather_u32 out_bytes,
                        gather_u32 granules, gather_u32 together) {
  gather_u32 first = GROUP_Y * together;
  if (plan[kGatherOutBytes] != out_bytes || first >= granules) return;
  granules = granules - first < together ? granules - first : together;
  gather_granules(plan, in + first * in_step, in_step, out + first * out_step, out_step, granules,
                  GROUP_X * THREADS + THREAD, GROUPS_X * THREADS);
}
