/* Direct reads through the C interface, of layer 0.
 *   direct_test BLOB FILE       FILE is the layer's. Prints whether reads are direct, before the first
 *                               one and after, and "cached" if they brought half the file or more into
 *                               the page cache
 *   direct_test --shorter BLOB FILE   cut while the blob is open, it gives an error that names it */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

/* The share of a file's pages that the page cache holds. */
static double cached(const char *path, int drop) {
  const int file = open(path, O_RDONLY);
  struct stat status;
  CHECK(file >= 0 && fstat(file, &status) == 0);
  if (drop) CHECK(fsync(file) == 0 && posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) == 0);
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  const size_t bytes = (size_t)status.st_size, pages = (bytes + page - 1) / page;
  void *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, file, 0);
  unsigned char *held = malloc(pages);
  CHECK(map != MAP_FAILED && mincore(map, bytes, held) == 0);
  size_t count = 0;
  for (size_t i = 0; i < pages; ++i) count += held[i] & 1;
  free(held);
  munmap(map, bytes);
  close(file);
  return (double)count / (double)pages;
}

static int direct(const char *directory, const char *path) {
  /* A RAM disk keeps what it has. */
  const int dropped = cached(path, 1) == 0;
  mxfp4_repack_blob *blob = open_blob(directory, 1);
  printf("%d", layer_of(blob, 0).direct);
  CHECK(verified(blob, 0) == MXFP4_REPACK_OK);
  printf(" %d%s\n", layer_of(blob, 0).direct, dropped && cached(path, 0) >= 0.5 ? " cached" : "");
  mxfp4_repack_close(blob);
  return 0;
}

static int shorter(const char *directory, const char *path) {
  mxfp4_repack_blob *blobs[2] = {open_blob(directory, 0), open_blob(directory, 1)};
  struct stat status;
  CHECK(stat(path, &status) == 0);
  for (int64_t size = status.st_size / 2 + 100; size > 0; size = size * 3 / 4 - 4096) {
    CHECK(truncate(path, (off_t)size) == 0);
    for (int i = 0; i < 2; ++i) {
      CHECK(verified(blobs[i], 0) == MXFP4_REPACK_INPUT);
      CHECK(strncmp(mxfp4_repack_last_error(), path, strlen(path)) == 0);
      CHECK(strstr(mxfp4_repack_last_error(), "became shorter") != NULL);
    }
  }
  for (int i = 0; i < 2; ++i) mxfp4_repack_close(blobs[i]);
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 4 && strcmp(argv[1], "--shorter") == 0) return shorter(argv[2], argv[3]);
  CHECK(argc == 3);
  return direct(argv[1], argv[2]);
}
