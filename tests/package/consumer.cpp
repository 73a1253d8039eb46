// Uses the installed libraries: converts a checkpoint, takes the blob apart again, and compares.
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "formats/blob/blob_reader.hpp"
#include "formats/conversion/repack.hpp"
#include "formats/conversion/restore.hpp"
#include "formats/decision/decide.hpp"
#include "formats/decision/recipes.hpp"
#include "lib/layouts/output.hpp"
#include "lib/revisions/revisions.hpp"

namespace {

namespace fs = std::filesystem;

// The tensors of a file, without its header.
std::vector<std::byte> data_of(const fs::path& path) {
  const mxfp4::LayerReader reader(path);
  std::vector<std::byte> data(
      static_cast<size_t>(reader.file().size() - reader.header().data_start));
  reader.read(0, data);
  return data;
}

// Converts for one backend and restores; the tensors of the first layer in the loaded layout.
std::vector<std::byte> round_trip(const fs::path& model, mxfp4::Backend backend,
                                  const fs::path& scratch) {
  mxfp4::ConversionRequest request{.rules = &mxfp4::default_revision()};
  request.deployment.arch = "sm90";
  request.backend = backend;
  mxfp4::OpenedCheckpoint checkpoint = mxfp4::open_checkpoint({.path = model}, *request.rules);
  const mxfp4::Conversion conversion = mxfp4::decide_conversion(request, &checkpoint);
  mxfp4::require_conversion(conversion);
  const mxfp4::RepackPlan plan =
      mxfp4::plan_repack(checkpoint, conversion.ranks, mxfp4::decided_manifest(conversion), {});
  {
    mxfp4::ConversionOutput output(
        {.output = scratch / "packed", .input = model, .shard = {}, .between = [] {}},
        plan.manifests, *checkpoint.source);
    mxfp4::Repack repack(checkpoint, plan, output, {});
    repack.run({});
    std::printf("%s: %lld bytes\n", std::string(mxfp4::id_of(*conversion.layout)).c_str(),
                static_cast<long long>(repack.commit().data_bytes));
  }
  const mxfp4::Manifest manifest = mxfp4::read_manifest(scratch / "packed");
  const auto restored =
      mxfp4::restore_blob(scratch / "packed", manifest, mxfp4::Directory(scratch), {}, {});
  if (!restored.lost.empty()) return {};
  const int64_t first = manifest.layers.front().index;
  return data_of(scratch / mxfp4::layer_file_name(first, false));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    const fs::path scratch = argv[2];
    // MARLIN pads and permutes, EMULATION does nothing; both restore the same bytes.
    const auto marlin = round_trip(argv[1], mxfp4::Backend::MARLIN, scratch / "marlin");
    const auto plain = round_trip(argv[1], mxfp4::Backend::EMULATION, scratch / "plain");
    const bool same = !plain.empty() && marlin == plain;
    std::puts(same ? "restored" : "differs");
    return same ? 0 : 1;
  } catch (const mxfp4::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
