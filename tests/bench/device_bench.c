/* Reads files past the page cache, as fast as their device gives them, and prints how long that took.
 *   device_bench THREADS FILE...
 * Prints seconds and bytes. Each thread has one read of 8 MiB in flight, into a huge page. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 8 << 20, HUGE_PAGE = 2 << 20, MOST_THREADS = 256 };

static int file, failed;
static long long next, size;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void *read_blocks(void *memory) {
  for (;;) {
    const long long at = __atomic_fetch_add(&next, BLOCK, __ATOMIC_RELAXED);
    if (at >= size) return NULL;
    if (pread(file, memory, BLOCK, at) < 0) __atomic_store_n(&failed, 1, __ATOMIC_RELAXED);
  }
}

int main(int argc, char **argv) {
  const int threads = argc > 2 ? atoi(argv[1]) : 0;
  if (threads < 1 || threads > MOST_THREADS) return 2;
  void *memory[MOST_THREADS];
  for (int i = 0; i < threads; ++i) {
    if (posix_memalign(&memory[i], HUGE_PAGE, BLOCK) != 0) return 1;
    madvise(memory[i], BLOCK, MADV_HUGEPAGE);
    memset(memory[i], 1, BLOCK);
  }
  long long all = 0;
  const double start = now();
  for (int i = 2; i < argc; ++i) {
    file = open(argv[i], O_RDONLY | O_DIRECT);
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0) {
      perror(argv[i]);
      return 1;
    }
    all += size = status.st_size;
    next = 0;
    pthread_t running[MOST_THREADS];
    for (int t = 0; t < threads; ++t) {
      if (pthread_create(&running[t], NULL, read_blocks, memory[t]) != 0) return 1;
    }
    for (int t = 0; t < threads; ++t) pthread_join(running[t], NULL);
    close(file);
  }
  printf("%.6f %lld\n", now() - start, all);
  return failed;
}
