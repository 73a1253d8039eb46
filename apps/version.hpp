// What --version prints.
#pragma once

#include "apps/console.hpp"

namespace mxfp4 {

// "mxfp4-repack 0.2.0", and with -v what a bug report needs: the commit, the releases that the program
// knows, its libraries and the instructions in use; with --json as a document. Returns kOk.
int print_version(const Console& console);

}  // namespace mxfp4
