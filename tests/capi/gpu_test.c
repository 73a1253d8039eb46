/* The C interface's way to a GPU, with fake_cuda.c or a real driver's absence.
 *   gpu_test BLOB             every layer, by several numbers of threads, equals what read_layer gives
 *   gpu_test --made CHECKPOINT BLOB   whoever makes it: what is made from the checkpoint equals
 *                             its blob; --made-once: in few ways
 *   gpu_test --made-on-cpus FUNCTION CHECKPOINT BLOB   the same, and the GPU cannot make it: FUNCTION fails
 *   gpu_test --damaged BLOB   verification finds the damage
 *   gpu_test --no-gpu BLOB    there is no GPU, or the driver fails: NO_GPU, with a reason */
#include <mxfp4_repack.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static unsigned char *allocate(int64_t bytes) {
  void *memory = NULL;
  CHECK(posix_memalign(&memory, 4096, (size_t)bytes + 1) == 0);
  return memory;
}

/* Reads a layer's tensors, each to its offset in `to`, rounded up to 8. */
static mxfp4_repack_status gpu_read_layer(mxfp4_repack_gpu *gpu, const mxfp4_repack_blob *blob, int64_t index, unsigned char *to,
                                      int64_t *offsets, int verify) {
  const mxfp4_repack_layer layer = layer_of(blob, index);
  mxfp4_repack_request requests[16];
  int64_t at = 0;
  for (int64_t i = 0; i < layer.num_tensors; ++i) {
    mxfp4_repack_tensor tensor = {.struct_size = sizeof tensor};
    CHECK(mxfp4_repack_get_tensor(blob, index, i, &tensor) == MXFP4_REPACK_OK);
    offsets[i] = at;
    requests[i] = (mxfp4_repack_request){index, i, 0, to + at, tensor.bytes};
    at += (tensor.bytes + 7) / 8 * 8;
  }
  mxfp4_repack_read_options options = {sizeof options, 1, verify, NULL};
  return mxfp4_repack_gpu_read(gpu, blob, requests, (size_t)layer.num_tensors, &options);
}

static int pass, few;

static mxfp4_repack_gpu *open_gpu(int threads, int64_t ring, int ranks) {
  mxfp4_repack_gpu_options options = {sizeof options, threads, ring, ranks, pass};
  mxfp4_repack_gpu *gpu;
  CHECK(mxfp4_repack_gpu_open(0, &options, &gpu) == MXFP4_REPACK_OK);
  return gpu;
}

/* `stored` holds the same bytes, in a blob: the same one, or that of the checkpoint. */
static void check_layers(const mxfp4_repack_blob *blob, const mxfp4_repack_blob *stored) {
  const int threads[] = {1, 2, 14, 14}, mib[] = {4, 0, 24, 5}; /* the last: for one thread only */
  const int ranks[] = {3, 2, 8, 0};
  const int modes = few ? 1 : 4; /* verified or not, twice */
  for (int t = few ? 2 : 0; t < 4; ++t) {
    mxfp4_repack_gpu *gpu = open_gpu(threads[t], (int64_t)mib[t] << 20, ranks[t]);
    for (int64_t index = 0; index < mxfp4_repack_num_layers(blob); ++index) {
      const mxfp4_repack_layer layer = layer_of(blob, index);
      unsigned char *want = allocate(layer.bytes), *got = allocate(layer.bytes + 8 * layer.num_tensors);
      int64_t offsets[16];
      CHECK(layer.num_tensors <= 16);
      CHECK(read_layer(stored, index, want, NULL) == MXFP4_REPACK_OK);
      for (int mode = 0; mode < modes; ++mode) {
        memset(got, 0xEE, (size_t)layer.bytes);
        CHECK(gpu_read_layer(gpu, blob, index, got, offsets, mode % 2) == MXFP4_REPACK_OK);
        for (int64_t i = 0; i < layer.num_tensors; ++i) {
          mxfp4_repack_tensor tensor = {.struct_size = sizeof tensor};
          CHECK(mxfp4_repack_get_tensor(blob, index, i, &tensor) == MXFP4_REPACK_OK);
          CHECK(memcmp(got + offsets[i], want + tensor.offset, (size_t)tensor.bytes) == 0);
        }
      }
      free(want);
      free(got);
    }
    mxfp4_repack_gpu_close(gpu);
  }
}

/* A layer by itself, with the bytes thrown away. */
static mxfp4_repack_status read_first(mxfp4_repack_gpu *gpu, const mxfp4_repack_blob *blob) {
  const mxfp4_repack_layer layer = layer_of(blob, 0);
  unsigned char *memory = allocate(layer.bytes + 8 * layer.num_tensors);
  int64_t offsets[16];
  const mxfp4_repack_status status = gpu_read_layer(gpu, blob, 0, memory, offsets, 0);
  free(memory);
  return status;
}

/* `made_by`: the GPU does not make it, and says so. */
static void check_made(const char *checkpoint, const mxfp4_repack_blob *stored, const char *made_by) {
  mxfp4_repack_blob *made;
  CHECK(mxfp4_repack_open_checkpoint(checkpoint, mxfp4_repack_manifest(stored, NULL), &made) == MXFP4_REPACK_OK);
  CHECK(mxfp4_repack_num_layers(made) == mxfp4_repack_num_layers(stored));
  for (pass = 0; pass < 3; ++pass) {
    if (made_by != NULL && pass != 1) {
      mxfp4_repack_gpu *gpu = open_gpu(2, 0, 1);
      const mxfp4_repack_status status = read_first(gpu, made);
      CHECK(status == (pass == 2 ? MXFP4_REPACK_NO_GPU : MXFP4_REPACK_OK));
      if (pass == 0) CHECK(strcmp(mxfp4_repack_gpu_made_by(gpu), made_by) == 0);
      mxfp4_repack_gpu_close(gpu);
    }
    if (made_by == NULL || pass < 2) check_layers(made, stored);
  }
  pass = 0;
  mxfp4_repack_close(made);
}

/* A checkpoint's file, as it is: the GPU gets what the host reads. */
static void check_file(const char *file) {
  mxfp4_repack_blob *opened;
  CHECK(mxfp4_repack_open_safetensors(file, &opened) == MXFP4_REPACK_OK);
  CHECK(mxfp4_repack_num_layers(opened) == 1 && *layer_of(opened, 0).prefix == 0);
  CHECK(*mxfp4_repack_manifest(opened, NULL) == 0);
  CHECK(mxfp4_repack_check_file(opened, 0, NULL) == MXFP4_REPACK_USAGE);
  check_layers(opened, opened);
  mxfp4_repack_close(opened);
}

static void check_wrong(const mxfp4_repack_blob *blob) {
  mxfp4_repack_gpu *gpu;
  mxfp4_repack_gpu_options options = {.struct_size = sizeof options, .threads = 2, .ring_bytes = 1 << 20};
  CHECK(mxfp4_repack_gpu_open(0, &options, &gpu) == MXFP4_REPACK_USAGE && gpu == NULL);
  options.ring_bytes = 0;
  options.ranks = -1;
  CHECK(mxfp4_repack_gpu_open(0, &options, &gpu) == MXFP4_REPACK_USAGE && gpu == NULL);
  options.ranks = 0;
  options.makes = 3;
  CHECK(mxfp4_repack_gpu_open(0, &options, &gpu) == MXFP4_REPACK_USAGE && gpu == NULL);
  CHECK(*mxfp4_repack_gpu_made_by(NULL) == 0);
  CHECK(mxfp4_repack_gpu_open(-1, NULL, &gpu) == MXFP4_REPACK_USAGE);
  CHECK(mxfp4_repack_gpu_open(7, NULL, &gpu) == MXFP4_REPACK_NO_GPU);
  CHECK(mxfp4_repack_gpu_open(0, NULL, NULL) == MXFP4_REPACK_USAGE);
  gpu = open_gpu(3, 0, 1);
  CHECK(mxfp4_repack_gpu_read(gpu, NULL, NULL, 0, NULL) == MXFP4_REPACK_USAGE);
  CHECK(mxfp4_repack_gpu_read(gpu, blob, NULL, 0, NULL) == MXFP4_REPACK_OK);
  mxfp4_repack_tensor tensor = {.struct_size = sizeof tensor};
  CHECK(mxfp4_repack_get_tensor(blob, 0, 0, &tensor) == MXFP4_REPACK_OK);
  unsigned char *memory = allocate(tensor.bytes);
  mxfp4_repack_request request = {0, 0, 0, memory + 1, tensor.bytes};
  const int32_t cancelled = 1;
  mxfp4_repack_read_options reading = {sizeof reading, 0, 1, NULL};
  CHECK(mxfp4_repack_gpu_read(gpu, blob, &request, 1, &reading) == MXFP4_REPACK_USAGE);
  request.memory = memory;
  reading.cancel = &cancelled;
  CHECK(mxfp4_repack_gpu_read(gpu, blob, &request, 1, &reading) == MXFP4_REPACK_CANCELLED);
  reading.cancel = NULL;
  request.bytes += 1;
  CHECK(mxfp4_repack_gpu_read(gpu, blob, &request, 1, &reading) == MXFP4_REPACK_USAGE);
  request.bytes -= 1;
  CHECK(mxfp4_repack_gpu_read(gpu, blob, &request, 1, &reading) == MXFP4_REPACK_OK);
  mxfp4_repack_gpu_close(gpu);
  mxfp4_repack_gpu_close(NULL);
  free(memory);
}

int main(int argc, char **argv) {
  mxfp4_repack_blob *blob;
  CHECK(argc > 1 && mxfp4_repack_open(argv[argc - 1], NULL, &blob) == MXFP4_REPACK_OK);
  if (argc == 2) {
    check_layers(blob, blob);
    check_wrong(blob);
  } else if (argc > 3 && strncmp(argv[1], "--made", 6) == 0) {
    char made_by[80];
    snprintf(made_by, sizeof made_by, "CPUs: %s: the fake driver fails (1)", argv[2]);
    few = strcmp(argv[1], "--made-once") == 0;
    check_made(argv[argc - 2], blob, argc > 4 ? made_by : NULL);
  } else if (argc == 4 && strcmp(argv[1], "--file") == 0) {
    check_file(argv[2]);
  } else {
    int64_t offsets[16];
    const mxfp4_repack_layer layer = layer_of(blob, 0);
    unsigned char *memory = allocate(layer.bytes + 8 * layer.num_tensors);
    mxfp4_repack_gpu *gpu = NULL;
    const mxfp4_repack_status want = strcmp(argv[1], "--damaged") == 0 ? MXFP4_REPACK_INPUT : MXFP4_REPACK_NO_GPU;
    mxfp4_repack_gpu_options options = {.struct_size = sizeof options};
    mxfp4_repack_status status = mxfp4_repack_gpu_open(0, &options, &gpu);
    if (status == MXFP4_REPACK_OK) status = gpu_read_layer(gpu, blob, 0, memory, offsets, 1);
    puts(mxfp4_repack_last_error());
    CHECK(status == want);
    mxfp4_repack_gpu_close(gpu);
    free(memory);
  }
  mxfp4_repack_close(blob);
  return 0;
}
