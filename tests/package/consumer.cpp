// Uses the installed libraries: every room is linked, and one layout is found by its id.
#include <cstdio>
#include <filesystem>

#include "formats/blob/manifest.hpp"
#include "formats/blob/seekable_zstd.hpp"
#include "formats/checkpoint/open_source.hpp"
#include "lib/exec/pipeline.hpp"
#include "lib/revisions/revisions.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto source = mxfp4::open_source(std::filesystem::path(argv[1]));
  int64_t jobs = 0;
  mxfp4::run_pipeline(3, {1, 1},
                      {.read = [](int64_t, int64_t) {},
                       .work = [](int64_t, int64_t) {},
                       .write = [&](int64_t, int64_t) { ++jobs; }});
  std::printf("%s, %zu tensors, zstd %s\n", mxfp4::revision_by_name("vllm-2026-05-18").name.data(),
              source->tensors().size(), mxfp4::zstd_library_version().c_str());
  const bool found = mxfp4::layout_by_id("triton/hopper") != nullptr;
  return found && jobs == 3 && !source->tensors().empty() ? 0 : 1;
}
