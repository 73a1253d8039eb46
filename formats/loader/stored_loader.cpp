#include "formats/loader/stored_loader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <system_error>
#include <utility>

#include "formats/blob/planned.hpp"
#include "formats/checkpoint/safetensors_source.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

std::unique_ptr<PositionedSource> open_one_file(const std::filesystem::path& file) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) {
    throw Error::input("is a directory, expected one safetensors file").in_file(file.string());
  }
  return open_safetensors(file);
}

}  // namespace

StoredLoader::StoredLoader(const std::filesystem::path& file)
    : path_(file), source_(open_one_file(file)) {
  const std::vector<SourceTensor>& tensors = source_->tensors();
  stored_.resize(tensors.size());
  std::iota(stored_.begin(), stored_.end(), size_t{0});
  std::ranges::stable_sort(stored_, {}, [&](size_t i) { return *tensors[i].file_offset; });
  ManifestLayer layer;
  for (const size_t i : stored_) {
    layer.tensors.push_back({.name = tensors[i].name,
                             .spec = tensors[i].spec,
                             .xxh3_128 = std::string(kNoChecksum),
                             .storage = {}});
  }
  manifest_.layers.push_back(std::move(layer));
}

StoredLoader::~StoredLoader() = default;

int64_t StoredLoader::best_piece(size_t /*layer*/, size_t /*tensor*/) const { return kPlainPiece; }

std::vector<LoadPiece> StoredLoader::pieces(size_t /*layer*/, size_t tensor, int64_t begin,
                                            int64_t bytes, int64_t limit) const {
  return cut_granules(tensor, begin, bytes, limit, 1);
}

void StoredLoader::read_piece(size_t /*layer*/, const LoadPiece& piece, MutableBytes out,
                              LoadBuffers& /*buffers*/, FrameCheck /*check*/,
                              ChecksumPart* sum) const {
  const PositionedSource::Place place = source_->place_of(stored_[piece.tensor]);
  place.file->read(place.offset + piece.begin, out);
  if (sum != nullptr) sum->update(out);
}

void StoredLoader::expect_part(size_t /*layer*/, size_t tensor, int64_t begin,
                               int64_t bytes) const {
  source_->expect({stored_[tensor], begin, bytes});
}

std::string StoredLoader::place(size_t layer, size_t tensor) const {
  return fmt::format("{}: {}", path_.string(), manifest_.layers[layer].tensors[tensor].name);
}

void StoredLoader::check_unchanged() const { source_->check_unchanged(); }

void StoredLoader::check_file(size_t /*layer*/, const LoadOptions& /*options*/) const {
  throw Error::usage(fmt::format("{}: has no checksum to compare with", path_.string()));
}

}  // namespace mxfp4
