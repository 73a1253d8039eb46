// The order in which the jobs of a plan run. The written bytes do not depend on it.
#pragma once

#include "lib/plan/plan.hpp"

namespace mxfp4 {

// Lets jobs of several files take turns: file systems let one thread at a time write to a file, and
// making its pages is most of the work where storage is fast. As many files take turns as there are
// threads, but at most sixteen, since an interrupted run loses its unfinished files. A file's jobs
// keep their order. tests/bench/README.md has figures.
void interleave_files(Plan& plan, int threads);

}  // namespace mxfp4
