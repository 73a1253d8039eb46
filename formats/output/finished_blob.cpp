#include "formats/output/finished_blob.hpp"

#include <fmt/format.h>

#include <system_error>

#include "formats/blob/blob_reader.hpp"
#include "formats/blob/blob_writer.hpp"
#include "formats/blob/gather.hpp"
#include "formats/checksum/checksum.hpp"
#include "formats/os/file.hpp"
#include "formats/os/mapped_file.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

class Look {
 public:
  Look(const fs::path& blob, bool all_bytes, const std::function<void()>& between,
       FinishedBlob& found)
      : blob_(blob), all_bytes_(all_bytes), between_(between), found_(found) {}

  // `name` is relative to the blob.
  void file(const FinishedFile& file, bool layer) {
    const fs::path path = (blob_ / file.name).lexically_normal();
    const size_t before = found_.damages.size();
    gather(found_.damages, [&] {
      in_file(path.string(), [&] { compare(path, file); });
      if (layer) (void)LayerReader(path);
    });
    (found_.damages.size() == before ? found_.whole.files : found_.lost)[file.name] = file;
  }

  void index(const Manifest& manifest) {
    const fs::path path = (blob_ / rank_directory(manifest.rank) / kIndexName).lexically_normal();
    constexpr int64_t kMaxIndexBytes = int64_t{256} << 20;
    gather(found_.damages, [&] {
      in_file(path.string(), [&] {
        if (read_text_file(path, kMaxIndexBytes) != write_index(manifest)) {
          throw Error::input("differs from the manifest");
        }
      });
    });
  }

 private:
  void compare(const fs::path& path, const FinishedFile& file) {
    std::error_code ignored;
    if (!fs::exists(path, ignored)) throw Error::input("missing");
    const MappedFile map(path);
    if (map.file().size != file.size) {
      throw Error::input(fmt::format("{} bytes, {} in the manifest", map.file().size, file.size));
    }
    if (all_bytes_ && checksum_of_mapped(map.bytes(), between_) != file.xxh3_128) {
      throw Error::input("checksum differs");
    }
  }

  const fs::path& blob_;
  bool all_bytes_;
  const std::function<void()>& between_;
  FinishedBlob& found_;
};

}  // namespace

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
  Look look(blob, all_bytes, between, found);
  for (const Manifest& manifest : manifests) {
    for (const FinishedFile& file : files_of(manifest)) look.file(file, true);
    if (indexed) look.index(manifest);
  }
  if (manifests.empty()) return found;
  for (const FinishedFile& file : rest_of(manifests.front())) look.file(file, false);
  return found;
}

}  // namespace mxfp4
