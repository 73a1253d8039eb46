/* Reads every layer of a blob into memory and prints how long that took.
 *   load_bench BLOB THREADS VERIFY [DIRECT]
 * Prints seconds and bytes. Memory for the largest layer is there before the clock runs. */
#include <mxfp4_repack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../capi/check.h"

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int failed(void) {
  fprintf(stderr, "load_bench: %s\n", mxfp4_repack_last_error());
  return 1;
}

int main(int argc, char **argv) {
  mxfp4_repack_blob *blob;
  if (argc != 4 && argc != 5) return 2;
  const mxfp4_repack_open_options how = {sizeof how, argc == 5 ? atoi(argv[4]) : 0, 0};
  if (mxfp4_repack_open(argv[1], &how, &blob) != MXFP4_REPACK_OK) return failed();
  const mxfp4_repack_read_options options = {sizeof options, atoi(argv[2]), atoi(argv[3]), NULL};
  const int64_t layers = mxfp4_repack_num_layers(blob);
  mxfp4_repack_layer layer = {.struct_size = sizeof layer};
  int64_t largest = 0, all = 0;
  for (int64_t i = 0; i < layers; ++i) {
    if (mxfp4_repack_get_layer(blob, i, &layer) != MXFP4_REPACK_OK) return failed();
    if (how.direct != layer.direct) {
      fprintf(stderr, "load_bench: direct reads: %d in place of %d\n", layer.direct, how.direct);
      return 1;
    }
    if (layer.bytes > largest) largest = layer.bytes;
    all += layer.bytes;
  }
  void *memory = NULL;
  if (posix_memalign(&memory, 4096, (size_t)largest) != 0) return 1;
  memset(memory, 1, (size_t)largest);
  const double start = now();
  for (int64_t i = 0; i < layers; ++i) {
    if (read_layer(blob, i, memory, &options) != MXFP4_REPACK_OK) return failed();
  }
  printf("%.6f %lld\n", now() - start, (long long)all);
  free(memory);
  mxfp4_repack_close(blob);
  return 0;
}
