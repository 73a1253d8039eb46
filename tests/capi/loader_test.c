/* The C interface as a C program uses it.
 *   loader_test BLOB PLAIN   every way to read layer 0 of BLOB, directly and not, gives the bytes of
 *                            PLAIN, the same layer as a safetensors file; wrong arguments are refused
 *   loader_test --damaged BLOB   verification finds that the blob is damaged
 *   loader_test --refused BLOB   it cannot be opened */
#include <mxfp4_repack.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static mxfp4_repack_read_options options_of(int threads, int verify) {
  mxfp4_repack_read_options options = {sizeof options, threads, verify, NULL};
  return options;
}

/* The data of a safetensors file. */
static unsigned char *read_data(const char *path, int64_t bytes) {
  FILE *file = fopen(path, "rb");
  uint64_t header;
  CHECK(file != NULL && fread(&header, 8, 1, file) == 1);
  CHECK(fseek(file, (long)(8 + header), SEEK_SET) == 0);
  unsigned char *data = malloc((size_t)bytes);
  CHECK(fread(data, 1, (size_t)bytes, file) == (size_t)bytes && fgetc(file) == EOF);
  fclose(file);
  return data;
}

static mxfp4_repack_tensor tensor_of(const mxfp4_repack_blob *blob, int64_t index) {
  mxfp4_repack_tensor tensor = {.struct_size = sizeof tensor};
  CHECK(mxfp4_repack_get_tensor(blob, 0, index, &tensor) == MXFP4_REPACK_OK);
  return tensor;
}

static void check_lists(const mxfp4_repack_blob *blob) {
  size_t size = 0;
  const char *manifest = mxfp4_repack_manifest(blob, &size);
  CHECK(size == strlen(manifest) && strstr(manifest, "\"format\": \"mxfp4-repack\"") != NULL);
  CHECK(mxfp4_repack_num_layers(blob) > 0);
  const mxfp4_repack_layer layer = layer_of(blob, 0);
  int64_t bytes = 0;
  for (int64_t i = 0; i < layer.num_tensors; ++i) {
    const mxfp4_repack_tensor tensor = tensor_of(blob, i);
    CHECK(strncmp(tensor.name, layer.prefix, strlen(layer.prefix)) == 0);
    CHECK(tensor.offset == bytes && tensor.num_dims > 0 && strlen(tensor.dtype) > 0);
    CHECK(tensor.expert_bytes == (tensor.shape[0] == layer.num_experts
                                      ? tensor.bytes / layer.num_experts : 0));
    bytes += tensor.bytes;
  }
  CHECK(bytes == layer.bytes);
}

static void check_layer(const mxfp4_repack_blob *blob, const unsigned char *expected) {
  const int64_t bytes = layer_of(blob, 0).bytes;
  unsigned char *memory = malloc((size_t)bytes + 2);
  for (int threads = 0; threads <= 16; threads += threads < 4 ? 1 : 6) {
    for (int verify = 0; verify < 2; ++verify) {
      const mxfp4_repack_read_options options = options_of(threads, verify);
      memset(memory, 0xEE, (size_t)bytes + 2);
      CHECK(read_layer(blob, 0, memory + 1, &options) == MXFP4_REPACK_OK);
      CHECK(strcmp(mxfp4_repack_last_error(), "") == 0);
      CHECK(memcmp(memory + 1, expected, (size_t)bytes) == 0);
      CHECK(memory[0] == 0xEE && memory[bytes + 1] == 0xEE);
    }
  }
  CHECK(read_layer(blob, 0, memory, NULL) == MXFP4_REPACK_OK);
  free(memory);
}

/* Every range of experts of every tensor, all in one call. */
static void check_ranges(const mxfp4_repack_blob *blob, const unsigned char *expected, int verify) {
  const mxfp4_repack_layer layer = layer_of(blob, 0);
  const mxfp4_repack_read_options options = options_of(3, verify);
  for (int64_t i = 0; i < layer.num_tensors; ++i) {
    const mxfp4_repack_tensor tensor = tensor_of(blob, i);
    if (tensor.expert_bytes == 0) continue;
    mxfp4_repack_request requests[64];
    size_t count = 0;
    for (int64_t first = 0; first <= layer.num_experts; ++first) {
      for (int64_t end = first; end <= layer.num_experts && count < 64; ++end) {
        const int64_t bytes = (end - first) * tensor.expert_bytes;
        const mxfp4_repack_request request = {0, i, first * tensor.expert_bytes,
                                              malloc((size_t)bytes + 1), bytes};
        requests[count++] = request;
      }
    }
    CHECK(mxfp4_repack_read(blob, requests, count, &options) == MXFP4_REPACK_OK);
    for (size_t r = 0; r < count; ++r) {
      const unsigned char *from = expected + tensor.offset + requests[r].begin;
      CHECK(memcmp(requests[r].memory, from, (size_t)requests[r].bytes) == 0);
      free(requests[r].memory);
    }
  }
}

/* Parts of every size give the tensor. */
static void check_parts(const mxfp4_repack_blob *blob, const unsigned char *expected) {
  const mxfp4_repack_read_options options = options_of(1, 0);
  for (int64_t i = 0; i < layer_of(blob, 0).num_tensors; ++i) {
    const mxfp4_repack_tensor tensor = tensor_of(blob, i);
    unsigned char *memory = malloc((size_t)tensor.bytes);
    for (int64_t limit = tensor.bytes / 5 + 1; limit < 2 * tensor.bytes; limit *= 3) {
      memset(memory, 0xEE, (size_t)tensor.bytes);
      mxfp4_repack_request part = {0, i, 0, NULL, 0};
      for (; part.begin < tensor.bytes; part.begin += part.bytes) {
        part.memory = memory + part.begin;
        part.bytes = limit < tensor.bytes - part.begin ? limit : tensor.bytes - part.begin;
        CHECK(mxfp4_repack_read(blob, &part, 1, &options) == MXFP4_REPACK_OK);
      }
      CHECK(memcmp(memory, expected + tensor.offset, (size_t)tensor.bytes) == 0);
    }
    free(memory);
  }
}

static void expect_usage(const mxfp4_repack_blob *blob, mxfp4_repack_request request,
                         const char *words) {
  CHECK(mxfp4_repack_read(blob, &request, 1, NULL) == MXFP4_REPACK_USAGE);
  CHECK(strstr(mxfp4_repack_last_error(), words) != NULL);
}

/* A layer's file is opened when a function is asked about the layer. */
static void check_lazy(const char *directory, const unsigned char *expected) {
  const mxfp4_repack_open_options options = {.struct_size = sizeof options, .lazy = 1};
  mxfp4_repack_blob *blob;
  CHECK(mxfp4_repack_open(directory, &options, &blob) == MXFP4_REPACK_OK);
  CHECK(mxfp4_repack_num_layers(blob) > 0 && mxfp4_repack_manifest(blob, NULL) != NULL);
  const int64_t bytes = layer_of(blob, 0).bytes;
  unsigned char *memory = malloc((size_t)bytes);
  CHECK(mxfp4_repack_check_file(blob, 0, NULL) == MXFP4_REPACK_OK);
  CHECK(read_layer(blob, 0, memory, NULL) == MXFP4_REPACK_OK);
  CHECK(memcmp(memory, expected, (size_t)bytes) == 0);
  CHECK(mxfp4_repack_check_file(blob, 99, NULL) == MXFP4_REPACK_USAGE);
  free(memory);
  mxfp4_repack_close(blob);
}

static void check_wrong_arguments(const mxfp4_repack_blob *blob) {
  const mxfp4_repack_tensor tensor = tensor_of(blob, 0);
  void *memory = malloc((size_t)tensor.bytes);
  const mxfp4_repack_request good = {0, 0, 0, memory, tensor.bytes};
  mxfp4_repack_request bad = good;
  bad.layer = mxfp4_repack_num_layers(blob), expect_usage(blob, bad, "layer");
  bad.layer = -1, expect_usage(blob, bad, "layer");
  bad = good, bad.tensor = 1000, expect_usage(blob, bad, "tensor");
  bad = good, bad.bytes = tensor.bytes + 1, expect_usage(blob, bad, "there are");
  bad = good, bad.bytes = -1, expect_usage(blob, bad, "there are");
  bad = good, bad.memory = NULL, expect_usage(blob, bad, "null");
  bad = good, bad.begin = 1, expect_usage(blob, bad, "there are");
  bad = good, bad.begin = -1, expect_usage(blob, bad, "there are");
  bad = good, bad.begin = INT64_MAX, bad.bytes = INT64_MAX, expect_usage(blob, bad, "there are");
  for (int threads = -1; threads <= 1025; threads += 1026) {
    const mxfp4_repack_read_options options = options_of(threads, 0);
    CHECK(mxfp4_repack_read(blob, &good, 1, &options) == MXFP4_REPACK_USAGE);
  }
  const mxfp4_repack_read_options unset = {0, 1, 0, NULL};
  CHECK(mxfp4_repack_read(blob, &good, 1, &unset) == MXFP4_REPACK_USAGE);
  CHECK(mxfp4_repack_read(blob, NULL, 1, NULL) == MXFP4_REPACK_USAGE);
  CHECK(mxfp4_repack_read(NULL, &good, 1, NULL) == MXFP4_REPACK_USAGE);
  CHECK(mxfp4_repack_read(blob, NULL, 0, NULL) == MXFP4_REPACK_OK);
  mxfp4_repack_tensor answer = {.struct_size = 0};
  CHECK(mxfp4_repack_get_tensor(blob, 0, 0, &answer) == MXFP4_REPACK_USAGE);
  CHECK(mxfp4_repack_get_tensor(blob, 0, 0, NULL) == MXFP4_REPACK_USAGE);
  CHECK(mxfp4_repack_get_tensor(blob, 0, -1, &answer) == MXFP4_REPACK_USAGE);
  CHECK(mxfp4_repack_get_layer(blob, 0, NULL) == MXFP4_REPACK_USAGE);
  /* An older caller's structure: what lies behind it is not touched. */
  mxfp4_repack_layer older;
  memset(&older, 0xEE, sizeof older);
  older.struct_size = offsetof(mxfp4_repack_layer, num_tensors);
  CHECK(mxfp4_repack_get_layer(blob, 0, &older) == MXFP4_REPACK_OK);
  CHECK(older.num_tensors == (int64_t)0xEEEEEEEEEEEEEEEEULL && older.prefix != NULL);
  free(memory);
}

static void check_cancel(const mxfp4_repack_blob *blob) {
  const int64_t bytes = layer_of(blob, 0).bytes;
  void *memory = malloc((size_t)bytes);
  const int32_t cancel = 1;
  mxfp4_repack_read_options options = options_of(2, 0);
  options.cancel = &cancel;
  CHECK(read_layer(blob, 0, memory, &options) == MXFP4_REPACK_CANCELLED);
  CHECK(strcmp(mxfp4_repack_last_error(), "cancelled") == 0);
  free(memory);
}

struct shared {
  const mxfp4_repack_blob *blob;
  const unsigned char *expected;
};

static void *read_in_thread(void *argument) {
  const struct shared *shared = argument;
  for (int i = 0; i < 4; ++i) check_ranges(shared->blob, shared->expected, 0);
  return NULL;
}

static void check_concurrent_readers(const mxfp4_repack_blob *blob, const unsigned char *expected) {
  struct shared shared = {blob, expected};
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) {
    CHECK(pthread_create(&threads[i], NULL, read_in_thread, &shared) == 0);
  }
  for (int i = 0; i < 4; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
}

static void check_ranges_of_plain_files_are_not_verified(const mxfp4_repack_blob *blob) {
  const int64_t bytes = tensor_of(blob, 0).expert_bytes;
  const mxfp4_repack_request request = {0, 0, bytes, malloc((size_t)bytes), bytes};
  const mxfp4_repack_read_options options = options_of(1, 1);
  CHECK(mxfp4_repack_read(blob, &request, 1, &options) == MXFP4_REPACK_USAGE);
  free(request.memory);
}

static int refused(const char *directory) {
  mxfp4_repack_blob *blob = (mxfp4_repack_blob *)&blob;
  CHECK(mxfp4_repack_open(directory, NULL, &blob) == MXFP4_REPACK_INPUT);
  CHECK(blob == NULL && strlen(mxfp4_repack_last_error()) > 0);
  printf("%d %s\n", (int)mxfp4_repack_last_fault(), mxfp4_repack_last_error());
  return 0;
}

/* One of the layers cannot be opened, or its verification fails, directly and not. */
static int damaged(const char *directory) {
  mxfp4_repack_blob *blob;
  if (mxfp4_repack_open(directory, NULL, &blob) == MXFP4_REPACK_INPUT) return 0;
  mxfp4_repack_blob *past_cache = open_blob(directory, 1);
  int found = 0;
  for (int64_t i = 0; i < mxfp4_repack_num_layers(blob); ++i) {
    const int64_t bytes = layer_of(blob, i).bytes;
    const mxfp4_repack_read_options options = options_of(2, 1);
    void *memory = malloc((size_t)bytes);
    const mxfp4_repack_status status = read_layer(blob, i, memory, &options);
    CHECK(status == MXFP4_REPACK_OK || status == MXFP4_REPACK_INPUT);
    CHECK(verified(past_cache, i) == status);
    if (status == MXFP4_REPACK_INPUT) found = 1;
    free(memory);
  }
  mxfp4_repack_close(blob);
  mxfp4_repack_close(past_cache);
  CHECK(found);
  return 0;
}

static void check_all(const mxfp4_repack_blob *blob, const unsigned char *expected) {
  check_lists(blob);
  check_layer(blob, expected);
  check_ranges(blob, expected, 0);
  check_parts(blob, expected);
  if (strstr(mxfp4_repack_manifest(blob, NULL), ".safetensors.zst") != NULL) {
    check_ranges(blob, expected, 1);
  } else {
    check_ranges_of_plain_files_are_not_verified(blob);
  }
  check_cancel(blob);
  check_concurrent_readers(blob, expected);
}

int main(int argc, char **argv) {
  CHECK(argc == 3);
  CHECK(mxfp4_repack_api_version() == MXFP4_REPACK_API_VERSION);
  CHECK(strlen(mxfp4_repack_version()) > 0 && strcmp(mxfp4_repack_last_error(), "") == 0);
  if (strcmp(argv[1], "--damaged") == 0) return damaged(argv[2]);
  if (strcmp(argv[1], "--refused") == 0) return refused(argv[2]);
  mxfp4_repack_blob *blob;
  CHECK(mxfp4_repack_open(NULL, NULL, &blob) == MXFP4_REPACK_USAGE && blob == NULL);
  CHECK(mxfp4_repack_open(argv[1], NULL, NULL) == MXFP4_REPACK_USAGE);
  const mxfp4_repack_open_options unset = {0, 1, 0};
  CHECK(mxfp4_repack_open(argv[1], &unset, &blob) == MXFP4_REPACK_USAGE && blob == NULL);
  CHECK(mxfp4_repack_open(argv[1], NULL, &blob) == MXFP4_REPACK_OK);
  CHECK(layer_of(blob, 0).direct == 0);
  unsigned char *expected = read_data(argv[2], layer_of(blob, 0).bytes);
  check_all(blob, expected);
  check_wrong_arguments(blob);
  check_lazy(argv[1], expected);
  mxfp4_repack_blob *past_cache = open_blob(argv[1], 1);
  check_all(past_cache, expected);
  mxfp4_repack_close(past_cache);
  free(expected);
  mxfp4_repack_close(blob);
  mxfp4_repack_close(NULL);
  return 0;
}
