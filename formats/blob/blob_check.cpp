#include "formats/blob/blob_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "formats/blob/gather.hpp"
#include "formats/checksum/checksum.hpp"
#include "formats/os/input_fault.hpp"
#include "formats/os/uninitialized_bytes.hpp"
#include "formats/remote/files_at.hpp"
#include "lib/core/error.hpp"
#include "lib/exec/run_on_threads.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

// Bytes of a plain file that are summed at a time.
constexpr int64_t kSummedPiece = int64_t{1} << 20;

// A layer file's bytes, from the first to the last, and the checksum of those that were given.
class FileBytes {
 public:
  FileBytes(const PositionedFile& file, const std::function<void(int64_t)>& progress)
      : file_(file), progress_(progress) {}

  // The next `bytes` bytes, valid until the next call.
  ConstBytes next(int64_t bytes) {
    memory_.resize(std::max(memory_.size(), static_cast<size_t>(file_.direct_room(bytes))));
    const ConstBytes given = file_.read_direct(at_, bytes, memory_);
    sum_.update(given);
    at_ += bytes;
    progress_(bytes);
    return given;
  }
  // The checksum of the whole file.
  std::string finish() {
    (void)next(file_.size() - at_);
    return sum_.hex();
  }

 private:
  const PositionedFile& file_;
  const std::function<void(int64_t)>& progress_;
  UninitializedBytes memory_;
  int64_t at_ = 0;
  Checksum sum_;
};

// Compares the checksums of a file whose description is right. Throws Error::input for damage.
std::vector<std::string> compare_sums(FileBytes& file, const LayerReader& reader,
                                      const ManifestLayer& stated) {
  std::vector<std::string> findings;
  const std::vector<SeekEntry>& frames = reader.frames();
  size_t frame = 1;  // the first is the header
  UninitializedBytes decoded;
  (void)file.next(reader.compressed() ? frames.front().frame.encoded : reader.header().data_start);
  for (const ManifestTensor& tensor : stated.tensors) {
    Checksum sum;
    for (int64_t left = tensor.spec.bytes(); left > 0;) {
      if (!reader.compressed()) {
        const ConstBytes part = file.next(std::min(left, kSummedPiece));
        sum.update(part);
        left -= std::ssize(part);
        continue;
      }
      // Frames begin at tensor starts.
      if (frame == frames.size() || frames[frame].frame.decoded > left) {
        throw Error::input(fmt::format("{}: its frames do not end where it does", tensor.name));
      }
      const FrameInfo& info = frames[frame++].frame;
      decoded.resize(static_cast<size_t>(info.decoded));
      decode_frame(file.next(info.encoded), info, decoded);
      sum.update(decoded);
      left -= info.decoded;
    }
    if (sum.hex() != tensor.xxh3_128) {
      findings.push_back(fmt::format("{}: checksum differs", tensor.name));
    }
  }
  if (reader.compressed() && frame != frames.size()) {
    throw Error::input("more frames than the manifest's tensors fill");
  }
  if (file.finish() != stated.xxh3_128 && findings.empty()) {
    findings.emplace_back("checksum of the file differs");
  }
  return findings;
}

std::vector<std::string> check_layer(const fs::path& path, const Manifest& manifest,
                                     const ManifestLayer& layer, ReadFrom from,
                                     const std::function<void(int64_t)>& progress) {
  return in_file(path.string(), [&] {
    PositionedFile file = file_at(path);
    if (from == ReadFrom::kDevice) file.forget_cached();
    LayerReader reader(std::move(file));
    require_description(reader, manifest, layer);
    if (from == ReadFrom::kDevice) reader.file().make_direct();
    FileBytes bytes(reader.file(), progress);
    std::vector<std::string> findings = compare_sums(bytes, reader, layer);
    for (std::string& finding : findings) finding = fmt::format("{}: {}", path.string(), finding);
    return findings;
  });
}

}  // namespace

void require_description(const LayerReader& reader, const Manifest& manifest,
                         const ManifestLayer& stated) {
  const auto differs = [](std::string_view what) {
    throw InputFault(Fault::kMismatch, fmt::format("{}: differs from the manifest", what));
  };
  if (reader.file().size() != stated.size) {
    throw InputFault(Fault::kSize, fmt::format("{} bytes, {} in the manifest", reader.file().size(),
                                               stated.size));
  }
  if (reader.compressed() != manifest.compression.zstd) {
    throw InputFault(Fault::kMismatch,
                     fmt::format("is {}compressed, but the manifest says otherwise",
                                 reader.compressed() ? "" : "not "));
  }
  const SafetensorsHeader& header = reader.header();
  const size_t count = std::min(header.tensors.size(), stated.tensors.size());
  for (size_t i = 0; i < count; ++i) {
    const ManifestTensor& tensor = stated.tensors[i];
    const bool equal =
        header.tensors[i].name == tensor.name && header.tensors[i].spec == tensor.spec;
    if (!equal) differs(tensor.name);
  }
  if (header.tensors.size() > count) differs(header.tensors[count].name);
  if (stated.tensors.size() > count) differs(stated.tensors[count].name);
  if (header.metadata != layer_metadata(manifest, stated)) differs("__metadata__");
  if (reader.front() != layer_header(manifest, stated)) differs("header");
}

void require_layer_file(const LayerReader& reader, const Manifest& manifest,
                        const ManifestLayer& layer) {
  require_description(reader, manifest, layer);
  if (checksum_of_file(reader.file()) != layer.xxh3_128) {
    throw Error::input("checksum of the file differs");
  }
}

std::vector<std::string> check_layer_sizes(const fs::path& directory, const Manifest& manifest) {
  std::vector<std::string> findings;
  for (const ManifestLayer& layer : manifest.layers) {
    const fs::path path = directory / layer.file;
    std::error_code error;
    const auto size =
        is_address(path) ? status_at(path).size : static_cast<int64_t>(fs::file_size(path, error));
    if (error) {
      findings.push_back(
          fmt::format("{}: {}", path.string(),
                      error == std::errc::no_such_file_or_directory ? "missing" : error.message()));
    } else if (size != layer.size) {
      findings.push_back(
          fmt::format("{}: {} bytes, {} in the manifest", path.string(), size, layer.size));
    }
  }
  return findings;
}

std::vector<std::string> check_layer_headers(const fs::path& directory, const Manifest& manifest) {
  std::vector<std::string> findings;
  for (const ManifestLayer& layer : manifest.layers) {
    const fs::path path = directory / layer.file;
    gather(findings, [&] {
      in_file(path.string(),
              [&] { require_description(LayerReader(file_at(path)), manifest, layer); });
    });
  }
  return findings;
}

std::vector<std::string> check_layer_files(const fs::path& directory, const Manifest& manifest,
                                           int threads,
                                           const std::function<void(int64_t)>& progress,
                                           ReadFrom from) {
  std::mutex mutex;
  const std::function<void(int64_t)> one_at_a_time = [&](int64_t bytes) {
    const std::scoped_lock lock(mutex);
    progress(bytes);
  };
  std::vector<std::vector<std::string>> found(manifest.layers.size());
  struct None {};
  run_on_threads<None>(threads, found.size(), [&](size_t i, None&) {
    const ManifestLayer& layer = manifest.layers[i];
    gather(found[i], [&] {
      found[i] = check_layer(directory / layer.file, manifest, layer, from, one_at_a_time);
    });
  });
  std::vector<std::string> findings;
  for (const auto& layer : found) findings.insert(findings.end(), layer.begin(), layer.end());
  return findings;
}

}  // namespace mxfp4
