// What a command says when its result is there.
#pragma once

#include <cstdio>
#include <new>

#include "apps/console.hpp"

namespace mxfp4 {

// Says it. Without memory for the words the result is complete all the same, and a warning says so;
// but who reads JSON gets the error.
template <class Body>
void say_summary(const Console& console, const Body& body) {
  try {
    body();
  } catch (const std::bad_alloc&) {
    if (console.json()) throw;
    std::fputs("mxfp4-repack: warning: out of memory for the summary; the result is complete\n",
               stderr);
  }
}

}  // namespace mxfp4
