#include "formats/output/finished_blob.hpp"

#include <system_error>
#include <utility>

#include "formats/blob/blob_files.hpp"
#include "formats/blob/blob_reader.hpp"
#include "formats/blob/blob_writer.hpp"
#include "formats/blob/gather.hpp"
#include "formats/blob/rest_check.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {

namespace fs = std::filesystem;

std::vector<FinishedFile> files_of(const Manifest& manifest) {
  std::vector<FinishedFile> files;
  for (const ManifestLayer& layer : manifest.layers) {
    files.push_back({name_in_blob(manifest.rank, layer.file), layer.size, layer.xxh3_128, {}});
    for (const ManifestTensor& tensor : layer.tensors) {
      files.back().tensors.push_back(tensor.xxh3_128);
    }
  }
  return files;
}

std::vector<FinishedFile> rest_of(const Manifest& manifest) {
  std::vector<FinishedFile> files;
  for (const ManifestFile& file : manifest.rest) {
    files.push_back({"../" + file.name, file.size, file.xxh3_128, {}});
  }
  return files;
}

FinishedBlob look_at_finished(const fs::path& blob, const std::vector<Manifest>& manifests,
                              bool indexed, bool all_bytes, const std::function<void()>& between) {
  FinishedBlob found;
  const auto look = [&](const FinishedFile& file, bool layer) {
    const fs::path path = (blob / file.name).lexically_normal();
    const size_t before = found.damages.size();
    gather(found.damages, [&] {
      std::error_code ignored;
      if (!fs::exists(path, ignored)) throw Error::input("missing").in_file(path.string());
      require_bytes(path, file.size, all_bytes ? &file.xxh3_128 : nullptr, ReadFrom::kCache,
                    between);
      if (layer) (void)LayerReader(path);
    });
    (found.damages.size() == before ? found.whole.files : found.lost)[file.name] = file;
  };
  for (const Manifest& manifest : manifests) {
    for (const FinishedFile& file : files_of(manifest)) look(file, true);
    if (!indexed) continue;
    const fs::path home = (blob / rank_directory(manifest.rank)).lexically_normal();
    for (std::string& damage : check_index(home, manifest))
      found.damages.push_back(std::move(damage));
  }
  if (manifests.empty()) return found;
  for (const FinishedFile& file : rest_of(manifests.front())) look(file, false);
  return found;
}

}  // namespace mxfp4
