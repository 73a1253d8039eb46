/* What paths the library takes, and its words about those that it does not.
 *   paths_test BLOB   BLOB is a directory's relative path */
#define _GNU_SOURCE
#include <fcntl.h>
#include <locale.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

static int open_here(void) {
  const int here = open(".", O_RDONLY | O_DIRECTORY);
  CHECK(here >= 0);
  return here;
}

static void go_back(int here) { CHECK(fchdir(here) == 0 && close(here) == 0); }

static void check_words_of_wild_paths(void) {
  const char *const wild[] = {"/x\xff\x1b[2J\n", "a\nb", "\xc3", "\xe2\x80\xae", "\r\t\x7f"};
  for (size_t i = 0; i < sizeof wild / sizeof *wild; ++i) {
    mxfp4_repack_blob *blob;
    CHECK(mxfp4_repack_open_safetensors(wild[i], &blob) == MXFP4_REPACK_INPUT && blob == NULL);
    CHECK(mxfp4_repack_open(wild[i], NULL, &blob) == MXFP4_REPACK_INPUT && blob == NULL);
    for (const char *c = mxfp4_repack_last_error(); *c != 0; ++c) {
      const unsigned char byte = (unsigned char)*c;
      CHECK(byte >= 0x20 && byte < 0x7f);
    }
  }
}

/* An empty path would be the current directory's blob. */
static void check_empty_paths(const char *directory) {
  const int here = open_here();
  CHECK(chdir(directory) == 0);
  mxfp4_repack_blob *blob;
  CHECK(mxfp4_repack_open("", NULL, &blob) == MXFP4_REPACK_USAGE && blob == NULL);
  CHECK(mxfp4_repack_open_checkpoint("", "{}", &blob) == MXFP4_REPACK_USAGE && blob == NULL);
  CHECK(mxfp4_repack_open_safetensors("", &blob) == MXFP4_REPACK_USAGE && blob == NULL);
  CHECK(mxfp4_repack_open(".", NULL, &blob) == MXFP4_REPACK_OK);
  mxfp4_repack_close(blob);
  go_back(here);
}

/* A long path and the cause, in whole characters. */
static void check_words_of_long_paths(void) {
  static const char *const parts[] = {"no/", "\xc3\xa4/", "\xe2\x82\xac/", "\xff/"};
  const char cause[] = "No such file or directory";
  char path[4000];
  for (size_t part = 0; part < sizeof parts / sizeof *parts; ++part) {
    for (size_t size = 400; size < 3900; size += 97) {
      memset(path, 'x', size % 5);
      path[size % 5] = 0;
      while (strlen(path) < size) strcat(path, parts[part]);
      mxfp4_repack_blob *blob;
      CHECK(mxfp4_repack_open_safetensors(path, &blob) == MXFP4_REPACK_INPUT && blob == NULL);
      const char *const words = mxfp4_repack_last_error();
      CHECK(strlen(words) > size && strncmp(words, path, size % 5) == 0);
      CHECK(strcmp(words + strlen(words) - strlen(cause), cause) == 0);
      CHECK(mbstowcs(NULL, words, 0) != (size_t)-1);
    }
  }
}

/* A file that is opened later is the one that was meant, wherever the process is by then. */
static void check_another_directory(const char *directory) {
  const mxfp4_repack_open_options options = {.struct_size = sizeof options, .lazy = 1};
  mxfp4_repack_blob *blob;
  CHECK(mxfp4_repack_open(directory, &options, &blob) == MXFP4_REPACK_OK);
  const int here = open_here();
  CHECK(chdir("/") == 0);
  CHECK(verified(blob, 0) == MXFP4_REPACK_OK);
  mxfp4_repack_close(blob);
  go_back(here);
}

int main(int argc, char **argv) {
  CHECK(argc == 2 && argv[1][0] != '/' && setlocale(LC_ALL, "C.UTF-8") != NULL);
  check_words_of_wild_paths();
  check_empty_paths(argv[1]);
  check_words_of_long_paths();
  check_another_directory(argv[1]);
  return 0;
}
