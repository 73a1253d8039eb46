// libFuzzer target: any text as a blob's manifest and, behind a NUL, bytes for its layers' files.
// They are read as they are; and as files that the manifest is made to describe, plain or in frames
// of any size, in which one thing may be wrong. The loader gives right bytes or Error::input, finds
// what is wrong, and nothing else.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "formats/blob/blob_writer.hpp"
#include "formats/blob/seekable_zstd.hpp"
#include "formats/loader/blob_loader.hpp"
#include "tests/fuzz/fuzz_input.hpp"

namespace {

using mxfp4::BlobLoader;
using mxfp4::Manifest;
using mxfp4::ManifestLayer;
using mxfp4::fuzz::Folder;
using mxfp4::fuzz::only_input_errors;

// Of all tensors of a blob: more is not made.
constexpr int64_t kMostBytes = 1 << 20;
// Frames of a tensor, and parts in which it is read: more take long.
constexpr int64_t kMostParts = 100;

enum class Wrong : uint8_t {
  kNothing,
  kStoredByte,
  kTensorSum,
  kFileSum,
  kTableSum,
  kTableSize,
  kHeader,
  kCount
};

// What follows the manifest's text.
struct Drawn {
  Wrong wrong = Wrong::kNothing;
  int64_t frame_bytes = 1;
  int64_t part_bytes = 1;
  bool lazy = false;
  std::string_view data;

  explicit Drawn(std::string_view text) {
    const auto take = [&text]() -> uint8_t {
      const auto value = static_cast<uint8_t>(text.empty() ? 0 : text.front());
      text.remove_prefix(text.empty() ? 0 : 1);
      return value;
    };
    wrong = static_cast<Wrong>(take() % static_cast<uint8_t>(Wrong::kCount));
    frame_bytes = 1 + take() * 16;
    part_bytes = 1 + take() * 8;
    lazy = (take() & 1) != 0;
    data = text;
  }
};

// Each layer's tensors, one behind the other. None if they are too large.
std::optional<std::vector<std::string>> contents(const Manifest& manifest, std::string_view data) {
  std::vector<std::string> all;
  int64_t bytes = 0;
  for (const ManifestLayer& layer : manifest.layers) {
    std::string content;
    for (const mxfp4::ManifestTensor& tensor : layer.tensors) {
      if (tensor.spec.bytes() > kMostBytes - bytes) return {};
      bytes += tensor.spec.bytes();
      for (int64_t i = 0; i < tensor.spec.bytes(); ++i) {
        content += data.empty() ? '\0' : data[content.size() % data.size()];
      }
    }
    all.push_back(std::move(content));
  }
  return all;
}

void spoil(std::string& hexadecimal) { hexadecimal[0] = hexadecimal[0] == '0' ? '1' : '0'; }

// The zstd file of `header` and a layer's tensors.
std::string framed(const std::string& header, const ManifestLayer& layer, std::string_view content,
                   const Drawn& drawn) {
  mxfp4::FrameEncoder encoder(2);  // level 1 would leave zstd out
  std::vector<std::byte> file;
  std::vector<mxfp4::FrameInfo> table{encoder.encode(std::as_bytes(std::span(header)), file)};
  for (const mxfp4::ManifestTensor& tensor : layer.tensors) {
    const int64_t frame = std::max(drawn.frame_bytes, tensor.spec.bytes() / kMostParts);
    for (int64_t rest = tensor.spec.bytes(); rest > 0;) {
      const std::string_view part = content.substr(0, static_cast<size_t>(std::min(rest, frame)));
      table.push_back(encoder.encode(std::as_bytes(std::span(part)), file));
      content.remove_prefix(part.size());
      rest -= static_cast<int64_t>(part.size());
    }
  }
  if (drawn.wrong == Wrong::kTableSum) table.back().checksum ^= 1U;
  if (drawn.wrong == Wrong::kTableSize) ++table.back().decoded;
  const std::vector<std::byte> end = mxfp4::make_seek_table(table);
  if (drawn.wrong == Wrong::kStoredByte) file.back() ^= std::byte{0x10};
  file.insert(file.end(), end.begin(), end.end());
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

std::string plain(const std::string& header, std::string_view content, const Drawn& drawn) {
  std::string file = header + std::string(content);
  if (drawn.wrong == Wrong::kStoredByte) file.back() = static_cast<char>(file.back() ^ 0x10);
  return file;
}

// Whether the layer's files can be wrong in this way.
bool applies(Wrong wrong, bool zstd) {
  return zstd || (wrong != Wrong::kTableSum && wrong != Wrong::kTableSize);
}

// Gives the manifest the files that are put into the folder.
void lay_out(const Folder& folder, Manifest& manifest, const std::vector<std::string>& all,
             const Drawn& drawn) {
  for (size_t i = 0; i < all.size(); ++i) {
    ManifestLayer& layer = manifest.layers[i];
    std::string_view rest = all[i];
    for (mxfp4::ManifestTensor& tensor : layer.tensors) {
      tensor.xxh3_128 =
          mxfp4::fuzz::checksum_of(rest.substr(0, static_cast<size_t>(tensor.spec.bytes())));
      rest.remove_prefix(static_cast<size_t>(tensor.spec.bytes()));
    }
    mxfp4::Manifest stated = manifest;
    if (drawn.wrong == Wrong::kHeader) stated.revision += '0';
    const std::string header = mxfp4::layer_header(stated, layer);
    const std::string file = manifest.compression.zstd ? framed(header, layer, all[i], drawn)
                                                       : plain(header, all[i], drawn);
    layer.size = static_cast<int64_t>(file.size());
    layer.xxh3_128 = mxfp4::fuzz::checksum_of(file);
    if (drawn.wrong == Wrong::kFileSum) spoil(layer.xxh3_128);
    if (drawn.wrong == Wrong::kTensorSum) spoil(layer.tensors.back().xxh3_128);
    folder.put(layer.file, file);
  }
  folder.put(mxfp4::kManifestName, mxfp4::write_manifest(manifest));
}

// Each tensor of a layer, whole and verified, and what it has to be; null: only that reading ends.
void read_tensors(const BlobLoader& loader, size_t layer, const std::string* content) {
  const auto& tensors = loader.manifest().layers[layer].tensors;
  size_t begin = 0;
  for (size_t i = 0; i < tensors.size(); begin += static_cast<size_t>(tensors[i++].spec.bytes())) {
    if (tensors[i].spec.bytes() > kMostBytes) continue;
    std::vector<std::byte> out(static_cast<size_t>(tensors[i].spec.bytes()));
    const std::vector<mxfp4::LoadRequest> requests{{layer, i, 0, out}};
    loader.read(requests, {.verify = true});
    if (content == nullptr) continue;
    if (!std::ranges::equal(out, std::as_bytes(std::span(*content)).subspan(begin, out.size())))
      std::abort();
  }
}

// The same in parts, whose borders the input draws, and in the loader's own pieces.
void read_parts(const BlobLoader& loader, size_t layer, std::string_view content, int64_t least) {
  mxfp4::LoadBuffers buffers;
  for (size_t i = 0; i < loader.manifest().layers[layer].tensors.size(); ++i) {
    const int64_t bytes = loader.tensor_bytes(layer, i);
    const int64_t limit = std::max(least, bytes / kMostParts);
    const auto want = std::as_bytes(std::span(content)).first(static_cast<size_t>(bytes));
    content.remove_prefix(want.size());
    std::vector<std::byte> out(static_cast<size_t>(bytes));
    for (int64_t begin = 0, end = 0; begin < bytes; begin = end) {
      end = begin + std::min(limit, bytes - begin);
      const auto part = mxfp4::MutableBytes(out).subspan(static_cast<size_t>(begin),
                                                         static_cast<size_t>(end - begin));
      const std::vector<mxfp4::LoadRequest> requests{{layer, i, begin, part}};
      loader.read(requests, {.verify = loader.manifest().compression.zstd});
    }
    if (!std::ranges::equal(out, want)) std::abort();
    std::ranges::fill(out, std::byte{0xEE});
    int64_t at = 0;
    for (const mxfp4::LoadPiece& piece : loader.pieces(layer, i, 0, bytes, limit)) {
      if (piece.begin != at || piece.bytes <= 0 || piece.bytes > limit || piece.bytes > bytes - at)
        std::abort();
      const auto part = mxfp4::MutableBytes(out).subspan(static_cast<size_t>(at),
                                                         static_cast<size_t>(piece.bytes));
      loader.read_piece(layer, piece, part, buffers, mxfp4::FrameCheck::kChecksums, nullptr);
      at += piece.bytes;
    }
    if (at != bytes || !std::ranges::equal(out, want)) std::abort();
  }
}

// Throws Error::input if anything is wrong.
void read_all(const Folder& folder, const std::vector<std::string>& all, const Drawn& drawn) {
  const BlobLoader loader(folder.path(), false, drawn.lazy);
  for (size_t layer = 0; layer < all.size(); ++layer) {
    read_tensors(loader, layer, &all[layer]);
    loader.check_file(layer, {});
    if (drawn.wrong == Wrong::kNothing) read_parts(loader, layer, all[layer], drawn.part_bytes);
  }
}

void read_described(const std::string& text, const Drawn& drawn) {
  Manifest manifest;
  std::optional<std::vector<std::string>> all;
  only_input_errors([&] {
    manifest = mxfp4::parse_manifest(text);
    all = contents(manifest, drawn.data);
  });
  if (!all || !applies(drawn.wrong, manifest.compression.zstd)) return;
  if (std::ranges::any_of(*all, [](const std::string& content) { return content.empty(); })) return;
  const Folder folder;
  lay_out(folder, manifest, *all, drawn);
  bool found = false;
  try {
    read_all(folder, *all, drawn);
  } catch (const mxfp4::Error& error) {
    if (error.kind() != mxfp4::ErrorKind::kInput) std::abort();
    found = true;
  }
  if (found != (drawn.wrong != Wrong::kNothing) && !all->empty()) std::abort();
}

void read_as_they_are(const std::string& text, std::string_view file, bool lazy) {
  const Folder folder;
  folder.put(mxfp4::kManifestName, text);
  only_input_errors([&] {
    for (const ManifestLayer& layer : mxfp4::parse_manifest(text).layers)
      folder.put(layer.file, file);
  });
  only_input_errors([&] {
    const BlobLoader loader(folder.path(), false, lazy);
    for (size_t layer = 0; layer < loader.manifest().layers.size(); ++layer) {
      read_tensors(loader, layer, nullptr);
      loader.check_file(layer, {});
    }
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = mxfp4::fuzz::text_of(data, size);
  const size_t end = std::min(input.find('\0'), input.size());
  const std::string manifest = mxfp4::fuzz::sealed(input.substr(0, end));
  const Drawn drawn(input.substr(std::min(end + 1, input.size())));
  read_as_they_are(manifest, drawn.data, drawn.lazy);
  read_described(manifest, drawn);
  return 0;
}
