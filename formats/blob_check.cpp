#include "formats/blob_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "formats/checksum.hpp"
#include "formats/mapped_file.hpp"
#include "formats/uncleared.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxIndexBytes = int64_t{256} << 20;
// Small enough that both checksums see a piece while it is in the cache.
constexpr int64_t kHashPiece = int64_t{256} << 10;

// Feeds the data of a layer file to the checksums of its tensors, piece by piece.
class TensorSums {
 public:
  explicit TensorSums(const ManifestLayer& layer) : sums_(layer.tensors.size()) {
    for (const ManifestTensor& tensor : layer.tensors) left_.push_back(tensor.spec.bytes());
  }

  void update(ConstBytes data) {
    while (!data.empty() && at_ < sums_.size()) {
      const auto take = std::min(data.size(), static_cast<size_t>(left_[at_]));
      sums_[at_].update(data.first(take));
      left_[at_] -= static_cast<int64_t>(take);
      data = data.subspan(take);
      while (at_ < sums_.size() && left_[at_] == 0) ++at_;
    }
  }

  [[nodiscard]] std::string hex(size_t tensor) const { return sums_[tensor].hex(); }

 private:
  std::vector<Checksum> sums_;
  std::vector<int64_t> left_;
  size_t at_ = 0;
};

// Both checksums of an uncompressed file in one pass.
void hash_plain(const LayerReader& reader, Checksum& file_sum, TensorSums& tensors,
                const std::function<void(int64_t)>& progress) {
  const ConstBytes file = reader.stored();
  const auto data_start = static_cast<size_t>(reader.header().data_start);
  file_sum.update(file.first(data_start));
  for (ConstBytes rest = file.subspan(data_start); !rest.empty();) {
    const ConstBytes piece = rest.first(std::min<size_t>(rest.size(), kHashPiece));
    file_sum.update(piece);
    tensors.update(piece);
    progress(static_cast<int64_t>(piece.size()));
    rest = rest.subspan(piece.size());
  }
}

void hash_frames(const LayerReader& reader, Checksum& file_sum, TensorSums& tensors,
                 const std::function<void(int64_t)>& progress) {
  file_sum.update(reader.stored());
  UnclearedBytes frame;
  for (const SeekEntry& entry : std::span(reader.frames()).subspan(1)) {
    frame.resize(static_cast<size_t>(entry.frame.decoded));
    reader.read(entry.decoded_offset - reader.header().data_start, frame);
    tensors.update(frame);
    progress(entry.frame.encoded);
  }
}

void compare_header(const LayerReader& reader, const Manifest& manifest, const ManifestLayer& layer,
                    std::vector<std::string>& findings) {
  const SafetensorsHeader& header = reader.header();
  std::map<std::string, TensorSpec> in_file;
  for (const SafetensorsTensor& tensor : header.tensors) in_file[tensor.name] = tensor.spec;
  for (const ManifestTensor& tensor : layer.tensors) {
    const auto found = in_file.find(tensor.name);
    if (found == in_file.end()) {
      findings.push_back(fmt::format("{}: missing in the file", tensor.name));
    } else if (found->second != tensor.spec) {
      findings.push_back(fmt::format("{}: {} {} in the file, {} {} in the manifest", tensor.name,
                                     dtype_name(found->second.dtype),
                                     found->second.shape.to_string(), dtype_name(tensor.spec.dtype),
                                     tensor.spec.shape.to_string()));
    }
    in_file.erase(tensor.name);
  }
  for (const auto& [name, spec] : in_file) {
    findings.push_back(fmt::format("{}: not in the manifest", name));
  }
  if (header.metadata != layer_metadata(manifest, layer)) {
    findings.emplace_back("__metadata__ differs from the manifest");
  }
}

std::vector<std::string> compare_description(const LayerReader& reader, const Manifest& manifest,
                                             const ManifestLayer& layer) {
  std::vector<std::string> findings;
  if (reader.file_bytes() != layer.size) {
    findings.push_back(
        fmt::format("{} bytes, {} in the manifest", reader.file_bytes(), layer.size));
  }
  compare_header(reader, manifest, layer, findings);
  return findings;
}

std::vector<std::string> check_open_file(const fs::path& path, const Manifest& manifest,
                                         const ManifestLayer& layer,
                                         const std::function<void(int64_t)>& progress) {
  const LayerReader reader(path);
  std::vector<std::string> findings = compare_description(reader, manifest, layer);
  if (!findings.empty()) return findings;
  Checksum file_sum;
  TensorSums tensors(layer);
  in_context(path.string(), [&] {
    (reader.compressed() ? hash_frames : hash_plain)(reader, file_sum, tensors, progress);
  });
  for (size_t i = 0; i < layer.tensors.size(); ++i) {
    if (tensors.hex(i) != layer.tensors[i].xxh3_128) {
      findings.push_back(fmt::format("{}: checksum differs", layer.tensors[i].name));
    }
  }
  if (file_sum.hex() != layer.xxh3_128 && findings.empty()) {
    findings.emplace_back("checksum of the file differs");
  }
  return findings;
}

}  // namespace

std::vector<std::string> check_blob_files(const fs::path& directory, const Manifest& manifest) {
  std::vector<std::string> findings;
  const fs::path index = directory / kIndexName;
  try {
    if (read_text_file(index, kMaxIndexBytes) != write_index(manifest)) {
      findings.push_back(fmt::format("{}: differs from the manifest", index.string()));
    }
  } catch (const Error& error) {
    findings.push_back(fmt::format("{}: {}", index.string(), error.what()));
  }
  for (std::string& finding : check_other_files(directory, manifest)) {
    findings.push_back(std::move(finding));
  }
  return findings;
}

std::vector<std::string> check_other_files(const fs::path& directory, const Manifest& manifest) {
  std::vector<std::string> findings;
  std::set<std::string> known;
  for (const ManifestLayer& layer : manifest.layers) {
    if (!known.insert(layer.file).second) {
      findings.push_back(fmt::format("{}: named twice in the manifest", layer.file));
    }
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (name.find(".safetensors") != std::string::npos && name != kIndexName &&
        !known.contains(name)) {
      findings.push_back(fmt::format("{}: not in the manifest", entry.path().string()));
    }
  }
  return findings;
}

std::vector<std::string> check_rest_files(const fs::path& model_directory,
                                          const Manifest& manifest) {
  std::vector<std::string> findings;
  for (const ManifestFile& file : manifest.rest) {
    const fs::path path = model_directory / file.name;
    try {
      in_context(path.string(), [&] {
        const MappedFile map(path);
        if (map.file().size != file.size) {
          throw Error::input(
              fmt::format("{} bytes, {} in the manifest", map.file().size, file.size));
        }
        Checksum sum;
        sum.update(map.bytes());
        if (sum.hex() != file.xxh3_128) throw Error::input("checksum differs");
      });
    } catch (const Error& error) {
      findings.emplace_back(error.what());
    }
  }
  return findings;
}

fs::path model_directory_of(const fs::path& directory) {
  std::error_code ignored;
  fs::path blob = fs::weakly_canonical(directory, ignored);
  if (blob.filename() != kBlobFolder) blob = blob.parent_path();  // out of a rank's directory
  return blob.filename() == kBlobFolder ? blob.parent_path() : fs::path();
}

void require_layer_file(const LayerReader& reader, const Manifest& manifest,
                        const ManifestLayer& layer) {
  const std::vector<std::string> findings = compare_description(reader, manifest, layer);
  if (!findings.empty()) throw Error::input(findings.front());
  Checksum sum;
  sum.update(reader.stored());
  if (sum.hex() != layer.xxh3_128) throw Error::input("checksum of the file differs");
}

std::vector<std::string> check_layer_file(const fs::path& directory, const Manifest& manifest,
                                          const ManifestLayer& layer,
                                          const std::function<void(int64_t)>& progress) {
  const fs::path path = directory / layer.file;
  std::vector<std::string> findings;
  try {
    for (const std::string& finding : check_open_file(path, manifest, layer, progress)) {
      findings.push_back(fmt::format("{}: {}", path.string(), finding));
    }
  } catch (const Error& error) {
    findings.emplace_back(error.what());
  }
  return findings;
}

}  // namespace mxfp4
