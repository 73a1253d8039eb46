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
  CHECK(mxfp4_repack_open(directory, &options, &blob) == MXFP4_REPACK_OK);
  return blob;
}

static inline mxfp4_repack_layer layer_of(const mxfp4_repack_blob *blob, int64_t index) {
  mxfp4_repack_layer layer = {.struct_size = sizeof layer};
  CHECK(mxfp4_repack_get_layer(blob, index, &layer) == MXFP4_REPACK_OK);
  return layer;
}

/* Reads all tensors of a layer to `memory`, one behind the other. */
static inline mxfp4_repack_status read_layer(const mxfp4_repack_blob *blob, int64_t layer, void *memory,
                                             const mxfp4_repack_read_options *options) {
  mxfp4_repack_request requests[64] = {{0}};
  const int64_t count = layer_of(blob, layer).num_tensors;
  CHECK(count <= 64);
  for (int64_t i = 0; i < count; ++i) {
    mxfp4_repack_tensor tensor = {.struct_size = sizeof tensor};
    CHECK(mxfp4_repack_get_tensor(blob, layer, i, &tensor) == MXFP4_REPACK_OK);
    requests[i].layer = layer, requests[i].tensor = i, requests[i].bytes = tensor.bytes;
    requests[i].memory = (char *)memory + tensor.offset;
  }
  return mxfp4_repack_read(blob, requests, (size_t)count, options);
}

/* Reads and verifies a layer, and gives the status. */
static inline mxfp4_repack_status verified(const mxfp4_repack_blob *blob, int64_t layer) {
  const mxfp4_repack_read_options options = {sizeof options, 2, 1, NULL};
  void *memory = malloc((size_t)layer_of(blob, layer).bytes);
  const mxfp4_repack_status status = read_layer(blob, layer, memory, &options);
  free(memory);
  return status;
}

#endif
