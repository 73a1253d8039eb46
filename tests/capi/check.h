/* What the C programs of this folder share. CHECK ends the program unless its condition holds. */
#ifndef MXFP4_TESTS_CAPI_CHECK_H
#define MXFP4_TESTS_CAPI_CHECK_H

#include <mxfp4_repack.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                     \
  do {                                                                                       \
    if (!(condition)) {                                                                      \
      fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, mxfp4_repack_last_error()); \
      exit(1);                                                                               \
    }                                                                                        \
  } while (0)

static inline mxfp4_repack_blob *open_blob(const char *directory, int32_t direct) {
  const mxfp4_repack_open_options options = {sizeof options, direct, 0};
  mxfp4_repack_blob *blob;
  CHECK(mxfp4_repack_open_with(directory, &options, &blob) == MXFP4_REPACK_OK);
  return blob;
}

static inline mxfp4_repack_layer layer_of(const mxfp4_repack_blob *blob, int64_t index) {
  mxfp4_repack_layer layer = {.struct_size = sizeof layer};
  CHECK(mxfp4_repack_get_layer(blob, index, &layer) == MXFP4_REPACK_OK);
  return layer;
}

/* Reads and verifies a layer, and gives the status. */
static inline mxfp4_repack_status verified(const mxfp4_repack_blob *blob, int64_t layer) {
  const int64_t bytes = layer_of(blob, layer).bytes;
  const mxfp4_repack_read_options options = {sizeof options, 2, 1, NULL};
  void *memory = malloc((size_t)bytes);
  const mxfp4_repack_status status = mxfp4_repack_read_layer(blob, layer, memory, bytes, &options);
  free(memory);
  return status;
}

#endif
