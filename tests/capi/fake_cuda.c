/* A stand-in for libcuda.so.1 for quick tests: memory of the GPU is the process's own, work is done
 * when it is asked for. Copies must start from registered memory, and a context must be current.
 * Two of three questions whether work is over are answered with no.
 * FAKE_CUDA_FAIL=NAME:N lets the N-th call of a function fail (N from 1), and all after it; NAME gather: the
 * compiling of that kernel.
 * FAKE_CUDA_OLD=1: several copies at once are not supported.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int Result;
enum { OK = 0, INVALID = 1, NOT_FOUND = 500, NOT_READY = 600, NOT_SUPPORTED = 801 };

static __thread int contexts;
static char *pinned;
static size_t pinned_bytes;

static int fails(const char *name) {
  static int calls;
  const char *wanted = getenv("FAKE_CUDA_FAIL");
  const size_t length = strlen(name);
  if (wanted == NULL || strncmp(wanted, name, length) != 0 || wanted[length] != ':') return 0;
  return __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST) >= atoi(wanted + length + 1);
}
#define MAY_FAIL(name) \
  if (fails(#name)) return INVALID

Result cuGetErrorString(Result r, const char **text) {
  (void)r;
  *text = "the fake driver fails";
  return OK;
}
Result cuInit(unsigned flags) { MAY_FAIL(cuInit); return flags == 0 ? OK : INVALID; }
Result cuDeviceGet(int *device, int ordinal) { *device = ordinal; return ordinal < 2 ? OK : INVALID; }
Result cuDeviceGetPCIBusId(char *text, int size, int device) {
  snprintf(text, (size_t)size, "0000:%02X:00.0", device);
  return OK;
}
Result cuDevicePrimaryCtxRetain(void **context, int device) {
  MAY_FAIL(cuDevicePrimaryCtxRetain);
  *context = &contexts + device;
  return OK;
}
Result cuDevicePrimaryCtxRelease_v2(int device) { (void)device; return OK; }
Result cuCtxPushCurrent_v2(void *context) { ++contexts; return context != NULL ? OK : INVALID; }
Result cuCtxPopCurrent_v2(void **context) { *context = NULL; return --contexts >= 0 ? OK : INVALID; }
static Result make(void **handle) {
  *handle = malloc(1);
  return contexts > 0 ? OK : INVALID;
}
Result cuStreamCreate(void **s, unsigned flags) { (void)flags; MAY_FAIL(cuStreamCreate); return make(s); }
Result cuStreamDestroy_v2(void *s) { free(s); return OK; }
Result cuStreamSynchronize(void *s) { MAY_FAIL(cuStreamSynchronize); return s != NULL ? OK : INVALID; }
Result cuStreamWaitEvent(void *s, void *e, unsigned flags) { (void)flags; return s && e ? OK : INVALID; }
Result cuEventCreate(void **e, unsigned flags) { (void)flags; MAY_FAIL(cuEventCreate); return make(e); }
Result cuEventDestroy_v2(void *e) { free(e); return OK; }
Result cuEventRecord(void *e, void *s) { MAY_FAIL(cuEventRecord); return e && s ? OK : INVALID; }
Result cuEventQuery(void *e) {
  static int calls;
  MAY_FAIL(cuEventQuery);
  if (e == NULL) return INVALID;
  return __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST) % 3 == 0 ? OK : NOT_READY;
}
Result cuMemHostRegister_v2(void *memory, size_t bytes, unsigned flags) {
  (void)flags;
  MAY_FAIL(cuMemHostRegister_v2);
  pinned = memory;
  pinned_bytes = bytes;
  return OK;
}
Result cuMemHostUnregister(void *memory) { return memory != NULL ? OK : INVALID; }
Result cuMemHostGetDevicePointer_v2(uint64_t *address, void *memory, unsigned flags) {
  (void)flags;
  MAY_FAIL(cuMemHostGetDevicePointer_v2);
  *address = (uintptr_t)memory;
  return OK;
}
static Result copy(uint64_t to, const void *from, size_t bytes, void *s) {
  const char *begin = from;
  if (s == NULL || contexts <= 0 || begin < pinned || begin + bytes > pinned + pinned_bytes) return INVALID;
  memcpy((void *)(uintptr_t)to, from, bytes);
  return OK;
}
Result cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *s) {
  MAY_FAIL(cuMemcpyHtoDAsync_v2);
  return copy(to, from, bytes, s);
}
typedef struct { int order, places[4]; unsigned flags; } CopyKind;
Result cuMemcpyBatchAsync(uint64_t *to, uint64_t *from, size_t *bytes, size_t count, CopyKind *kinds,
                          size_t *first_of_kind, size_t num_kinds, size_t *failed, void *s) {
  MAY_FAIL(cuMemcpyBatchAsync);
  if (getenv("FAKE_CUDA_OLD") != NULL) return NOT_SUPPORTED;
  if (count == 0 || num_kinds != 1 || kinds->order != 1 || *first_of_kind != 0) return INVALID;
  for (*failed = 0; *failed < count; ++*failed) {
    if (copy(to[*failed], (void *)(uintptr_t)from[*failed], bytes[*failed], s) != OK) return INVALID;
  }
  return OK;
}
static int allocations;
Result cuMemAlloc_v2(uint64_t *address, size_t bytes) {
  MAY_FAIL(cuMemAlloc_v2);
  if (contexts <= 0 || __atomic_add_fetch(&allocations, 1, __ATOMIC_SEQ_CST) > 1) return INVALID;
  *address = (uintptr_t)aligned_alloc(256, (bytes + 255) / 256 * 256);
  return *address != 0 ? OK : INVALID;
}
Result cuMemFree_v2(uint64_t address) {
  __atomic_add_fetch(&allocations, -1, __ATOMIC_SEQ_CST);
  free((void *)(uintptr_t)address);
  return OK;
}
Result cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) {
  MAY_FAIL(cuMemcpyHtoD_v2);
  if (contexts <= 0) return INVALID;
  memcpy((void *)(uintptr_t)to, from, bytes);
  return OK;
}

Result cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *s) {
  MAY_FAIL(cuMemcpyDtoDAsync_v2);
  if (s == NULL || contexts <= 0) return INVALID;
  memcpy((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes);
  return OK;
}

/* The kernels, by their own source. */
static __thread unsigned group_x, group_y, groups_x, thread, threads;
#define GPU_KERNEL static void
#define GPU_CONSTANT static const
#define GROUP_X group_x
#define GROUP_Y group_y
#define GROUPS_X groups_x
#define THREAD thread
#define THREADS threads
#include "formats/loader/gpu/gather.cu"
#include "formats/loader/gpu/sum_blocks.cu"

static void run_gather(void **a) {
  mxfp4_gather(*(void **)a[0], *(void **)a[1], *(uint64_t *)a[2], *(void **)a[3], *(uint64_t *)a[4], *(uint32_t *)a[5],
              *(uint32_t *)a[6], *(uint32_t *)a[7]);
}
static void run_sum_blocks(void **a) { mxfp4_sum_blocks(*(struct SumPieces *)a[0]); }
static const struct {
  const char *name;
  void (*run)(void **arguments);
} kernels[] = {{"mxfp4_gather", run_gather}, {"mxfp4_sum_blocks", run_sum_blocks}};

Result cuModuleLoadData(void **module, const void *ptx) {
  MAY_FAIL(cuModuleLoadData);
  if (strstr(ptx, kernels[0].name) != NULL) MAY_FAIL(gather);
  *module = malloc(1);
  const int known = strstr(ptx, kernels[0].name) != NULL || strstr(ptx, kernels[1].name) != NULL;
  return known && strncmp(ptx, "\n.version", 9) == 0 ? OK : INVALID;
}
Result cuModuleUnload(void *module) { free(module); return OK; }
Result cuModuleGetFunction(void **function, void *module, const char *name) {
  if (module == NULL) return INVALID;
  for (int k = 0; k < 2; ++k) {
    *function = (void *)&kernels[k];
    if (strcmp(kernels[k].name, name) == 0) return OK;
  }
  return NOT_FOUND;
}
Result cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                      unsigned bz, unsigned shared, void *s, void **arguments, void **extra) {
  MAY_FAIL(cuLaunchKernel);
  if (function == NULL || s == NULL || extra != NULL || shared != 0 || gx * gy * bx == 0 || gz * by * bz != 1) return INVALID;
  groups_x = gx;
  threads = bx;
  for (group_y = 0; group_y < gy; ++group_y) {
    for (group_x = 0; group_x < gx; ++group_x) {
      for (thread = 0; thread < bx; ++thread) kernels[function == &kernels[1]].run(arguments);
    }
  }
  return OK;
}
