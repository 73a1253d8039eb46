// What DeepGEMM's layout kernels find on a device, for the CPU: a thread there is a thread here.
#include <algorithm>
#include <barrier>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>
#define CUTLASS_GLOBAL
#define CUTLASS_DEVICE
#define CUTLASS_HOST_DEVICE
#define __shared__
#define DG_STATIC_ASSERT(holds, ...) static_assert(holds)
#define DG_DEVICE_ASSERT(holds) ((holds) ? (void)0 : std::abort())
#define DG_TRAP_ONLY_DEVICE_ASSERT(holds) ((holds) ? (void)0 : std::abort())
using std::min;
struct Index {
  unsigned x, y, z;
};
static thread_local Index threadIdx, blockIdx;
static std::barrier<>* turn;
static void __syncthreads() { turn->arrive_and_wait(); }
static void cudaGridDependencySynchronize() {}
struct alignas(8) uint2 {
  uint32_t x, y;
};
struct alignas(16) uint4 {
  uint32_t x, y, z, w;
};
static uint2 make_uint2(uint32_t x, uint32_t y) { return {x, y}; }
static uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w) { return {x, y, z, w}; }
// Blocks run one after the other, so one shared memory will do.
alignas(16) static uint32_t smem_buffer[1 << 16];
namespace ptx {
static void st_shared(uint32_t* to, uint32_t value) { *to = value; }
static void st_shared(uint4* to, uint32_t x, uint32_t y, uint32_t z, uint32_t w) {
  *to = {x, y, z, w};
}
static uint32_t ld_shared(const uint32_t* from) { return *from; }
static uint32_t get_lane_idx() { return threadIdx.x % 32; }
}  // namespace ptx
