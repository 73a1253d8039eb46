#include "formats/blob/layer_mark.hpp"

#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "formats/blob/manifest.hpp"
#include "formats/blob/seekable_zstd.hpp"
#include "formats/json/strict_json.hpp"
#include "formats/os/mapped_file.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

// Headers of 1000 experts' tensors stay far below this.
constexpr uint64_t kMaxHeaderBytes = uint64_t{16} << 20;

// Gives the decoded bytes of a file, from its beginning; fewer than asked for if the file ends or
// is damaged.
class Front {
 public:
  explicit Front(ConstBytes file) : file_(file), zstd_(is_zstd(file)) {
    if (zstd_) stream_.reset(ZSTD_createDStream());
  }

  std::string take(size_t count) {
    std::string out;
    if (!zstd_) {
      const ConstBytes part = file_.first(std::min(count, file_.size()));
      out.assign(reinterpret_cast<const char*>(part.data()), part.size());
      file_ = file_.subspan(part.size());
      return out;
    }
    out.resize(count);
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    ZSTD_inBuffer from{file_.data(), file_.size(), 0};
    while (stream_ && to.pos < to.size && from.pos < from.size) {
      if (ZSTD_isError(ZSTD_decompressStream(stream_.get(), &to, &from)) != 0) break;
    }
    file_ = file_.subspan(from.pos);
    out.resize(to.pos);
    return out;
  }

 private:
  struct Free {
    void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
  };
  ConstBytes file_;
  bool zstd_;
  std::unique_ptr<ZSTD_DStream, Free> stream_;
};

// __metadata__ of the safetensors header that the file begins with, zstd or not; null for
// other files.
nlohmann::json metadata_of(const std::filesystem::path& path) {
  try {
    const MappedFile map(path);
    Front front(map.bytes());
    const std::string length = front.take(sizeof(uint64_t));
    uint64_t bytes = 0;
    if (length.size() != sizeof bytes) return {};
    std::memcpy(&bytes, length.data(), sizeof bytes);
    if (bytes > kMaxHeaderBytes) return {};
    const nlohmann::json header = parse_strict_json(front.take(bytes));
    const auto metadata = header.find("__metadata__");
    return metadata != header.end() && metadata->is_object() ? *metadata : nlohmann::json();
  } catch (const Error&) {
    return {};  // unreadable, damaged, or of another kind
  }
}

}  // namespace

bool is_our_layer(const std::filesystem::path& path) {
  const nlohmann::json metadata = metadata_of(path);
  return metadata.is_object() &&
         (metadata.contains(kPackedMark) || metadata.contains(kUnpackedMark));
}

std::string published_config(const std::filesystem::path& path) {
  const nlohmann::json metadata = metadata_of(path);
  if (!metadata.is_object() || !metadata.contains(kUnpackedMark)) return "";
  const auto found = metadata.find(kPublishedConfig);
  return found != metadata.end() && found->is_string() ? found->get<std::string>() : "";
}

bool begins_with_header(const std::filesystem::path& path, std::string_view header) {
  try {
    const MappedFile map(path);
    return Front(map.bytes()).take(header.size()) == header;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace mxfp4
