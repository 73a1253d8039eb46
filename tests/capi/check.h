/* What the C programs of this folder share: CHECK ends the program unless its condition holds. */
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

#endif
