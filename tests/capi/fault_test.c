/* One reading of a blob's layer 0, verified; some call of it may fail (every_read.py).
 *   fault_test WAY BLOB FILE   WAY is eager, lazy or direct; FILE is the layer as a plain file. Ends with 0 if every
 *                              byte was FILE's, and with 3, the words on stdout, if the library refused */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"

/* The file's last `bytes` bytes, its data. Opened past the C library, whose calls may fail here. */
static unsigned char *data_of(const char *path, int64_t bytes) {
  FILE *file = fdopen((int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY), "rb");
  unsigned char *data = malloc((size_t)bytes);
  CHECK(file != NULL && fseek(file, -(long)bytes, SEEK_END) == 0);
  CHECK(fread(data, 1, (size_t)bytes, file) == (size_t)bytes);
  fclose(file);
  return data;
}

static void unless_refused(mxfp4_repack_status status) {
  if (status == MXFP4_REPACK_OK) return;
  CHECK(status == MXFP4_REPACK_INPUT);
  puts(mxfp4_repack_last_error());
  exit(3);
}

int main(int argc, char **argv) {
  CHECK(argc == 4);
  const mxfp4_repack_open_options how = {.struct_size = sizeof how,
                                         .direct = strcmp(argv[1], "direct") == 0,
                                         .lazy = strcmp(argv[1], "lazy") == 0};
  const mxfp4_repack_read_options options = {.struct_size = sizeof options, .threads = 1, .verify = 1};
  mxfp4_repack_blob *blob;
  unless_refused(mxfp4_repack_open(argv[2], &how, &blob));
  mxfp4_repack_layer layer = {.struct_size = sizeof layer};
  unless_refused(mxfp4_repack_get_layer(blob, 0, &layer));
  unsigned char *const want = data_of(argv[3], layer.bytes), *const memory = calloc(1, (size_t)layer.bytes);
  unless_refused(read_layer(blob, 0, memory, &options));
  CHECK(memcmp(memory, want, (size_t)layer.bytes) == 0);
  unless_refused(mxfp4_repack_check_file(blob, 0, &options));
  free(memory);
  free(want);
  mxfp4_repack_close(blob);
  return 0;
}
