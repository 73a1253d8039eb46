/* Uses the installed shared library: reads the first tensor of the blob argv[1], as the header says. */
#include <mxfp4_repack.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(const char *what) {
  fprintf(stderr, "%s\n", what);
  return 1;
}

int main(int argc, char **argv) {
  mxfp4_repack_blob *blob;
  if (argc != 2) return 2;
  if (mxfp4_repack_open(argv[1], NULL, &blob) != MXFP4_REPACK_OK) return fail(mxfp4_repack_last_error());
  mxfp4_repack_tensor tensor = {.struct_size = sizeof tensor};
  if (mxfp4_repack_get_tensor(blob, 0, 0, &tensor) != MXFP4_REPACK_OK) {
    return fail(mxfp4_repack_last_error());
  }
  void *memory = malloc((size_t)tensor.bytes);
  mxfp4_repack_request request = {.layer = 0, .tensor = 0,
                                  .memory = memory, .bytes = tensor.bytes};
  mxfp4_repack_read_options options = {.struct_size = sizeof options, .threads = 2, .verify = 1};
  if (mxfp4_repack_read(blob, &request, 1, &options) != MXFP4_REPACK_OK) {
    return fail(mxfp4_repack_last_error());
  }
  printf("%s: %lld bytes\n", tensor.name, (long long)tensor.bytes);
  free(memory);
  mxfp4_repack_close(blob);
  return 0;
}
