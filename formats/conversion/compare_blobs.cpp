#include "formats/conversion/compare_blobs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <string_view>
#include <utility>

#include "formats/blob/blob_reader.hpp"
#include "formats/conversion/first_difference.hpp"
#include "formats/decision/contents.hpp"
#include "formats/os/uninitialized_bytes.hpp"
#include "lib/core/error.hpp"
#include "lib/exec/job_pipeline.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kComparedBytes = int64_t{4} << 20;

// Keeps the first difference of several facts.
class FirstDifference {
 public:
  explicit FirstDifference(std::string place) : place_(std::move(place)) {}

  template <class Value>
  void check(std::string_view what, const Value& first, const Value& second) {
    if (found_ || first == second) return;
    found_ = {place_, std::string(what), fmt::format("{}", first), fmt::format("{}", second)};
  }
  [[nodiscard]] const std::optional<BlobDifference>& found() const { return found_; }

 private:
  std::string place_;
  std::optional<BlobDifference> found_;
};

// Describes a tensor as a kernel sees it: shape and strides in memory, wrapper class and its
// arguments.
std::string storage_text(const Storage& s) {
  std::string kwargs;
  for (const auto& [name, value] : s.layout_kwargs) kwargs += fmt::format(" {}={}", name, value);
  return fmt::format("{} {}{} shape {} strides {} logical {} {} slack {} flags {}", s.torch_dtype,
                     s.layout, kwargs, s.storage_shape, s.storage_strides, s.logical_dtype,
                     s.logical_shape, s.slack_bytes, s.flags);
}

std::string spec_text(const TensorSpec& spec) {
  return fmt::format("{} {}", dtype_name(spec.dtype), spec.shape.to_string());
}

std::string name_of(const std::vector<ManifestTensor>& tensors, size_t i) {
  return i < tensors.size() ? tensors[i].name : "nothing";
}

std::optional<BlobDifference> compare_layer(const ManifestLayer& a, const ManifestLayer& b) {
  FirstDifference layer(fmt::format("layer {}", a.index));
  layer.check("prefix", a.prefix, b.prefix);
  layer.check("hidden size", a.hidden_size, b.hidden_size);
  layer.check("padded hidden size", a.loaded.dims.hidden_size, b.loaded.dims.hidden_size);
  layer.check("padded intermediate size", a.loaded.dims.intermediate_size,
              b.loaded.dims.intermediate_size);
  layer.check("experts", a.loaded.dims.num_experts, b.loaded.dims.num_experts);
  layer.check("its own experts", a.experts.value_or(std::vector<int64_t>{}),
              b.experts.value_or(std::vector<int64_t>{}));
  for (size_t i = 0; i < std::max(a.tensors.size(), b.tensors.size()); ++i) {
    layer.check(fmt::format("tensor {}", i), name_of(a.tensors, i), name_of(b.tensors, i));
  }
  if (layer.found()) return layer.found();
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    FirstDifference tensor(a.tensors[i].name);
    tensor.check("type and shape", spec_text(a.tensors[i].spec), spec_text(b.tensors[i].spec));
    tensor.check("view", storage_text(a.tensors[i].storage), storage_text(b.tensors[i].storage));
    if (tensor.found()) return tensor.found();
  }
  return std::nullopt;
}

std::vector<int64_t> layer_numbers(const Manifest& manifest) {
  std::vector<int64_t> numbers;
  for (const ManifestLayer& layer : manifest.layers) numbers.push_back(layer.index);
  return numbers;
}

// Compares everything of two ranks except the bytes.
std::optional<BlobDifference> compare_rank(const Manifest& a, const Manifest& b) {
  FirstDifference facts(a.rank.num_ranks == 1 ? "" : fmt::format("rank {}", a.rank.rank));
  facts.check("layout", a.layout, b.layout);
  facts.check("family", family_name(a.target.family), family_name(b.target.family));
  facts.check("w13_order", w13_order_name(a.order), w13_order_name(b.order));
  facts.check("rank", a.rank.rank, b.rank.rank);
  facts.check("ranks", a.rank.num_ranks, b.rank.num_ranks);
  facts.check("experts", a.rank.experts, b.rank.experts);
  facts.check("intermediate range", std::vector{a.rank.begin, a.rank.end},
              std::vector{b.rank.begin, b.rank.end});
  facts.check("layers", layer_numbers(a), layer_numbers(b));
  if (facts.found()) return facts.found();
  for (size_t i = 0; i < a.layers.size(); ++i) {
    if (auto found = compare_layer(a.layers[i], b.layers[i])) return found;
  }
  return std::nullopt;
}

std::vector<std::string> differing_notes(const Manifest& a, const Manifest& b) {
  std::vector<std::string> notes;
  const auto note = [&](std::string_view what, std::string_view first, std::string_view second) {
    if (first != second) notes.push_back(fmt::format("{}: {}, {}", what, first, second));
  };
  note("revision", a.revision, b.revision);
  note("backend", backend_name(a.target.backend), backend_name(b.target.backend));
  note("arch", a.target.arch, b.target.arch);
  note("kernel library", a.kernel_library, b.kernel_library);
  note("compression", a.compression.zstd ? "zstd" : "none", b.compression.zstd ? "zstd" : "none");
  note("source", a.source.kind, b.source.kind);
  note("program", a.tool_version, b.tool_version);
  return notes;
}

// A layer file of one blob, open.
struct OpenFile {
  fs::path path;
  LayerReader reader;
};

// A layer of both blobs.
struct LayerPair {
  const ManifestLayer& layer;
  OpenFile first;
  OpenFile second;
};

// Some consecutive bytes of one tensor.
struct BlobPiece {
  int64_t number = 0;  // in the order in which pieces are reported
  size_t pair = 0;
  size_t tensor = 0;
  int64_t begin = 0;
  int64_t bytes = 0;
};

struct PieceBuffers {
  UninitializedBytes first;
  UninitializedBytes second;
  std::optional<BlobDifference> difference;
  // The piece could not be read. Thrown only if no piece before it differs.
  std::exception_ptr failure;
};

// The smallest number of a piece that decides the answer: later pieces need not be read. With
// several threads a later piece may be the first to decide, so the number can fall, and never
// rises. Who sees an older number reads a piece that need not be read, no more.
class SettledAt {
 public:
  [[nodiscard]] bool before(int64_t number) const { return least_.load() < number; }
  void lower_to(int64_t number) {
    int64_t least = least_.load();
    while (number < least && !least_.compare_exchange_weak(least, number)) {
    }
  }

 private:
  std::atomic<int64_t> least_ = std::numeric_limits<int64_t>::max();
};

// Throws Error::input unless the file holds the tensors of its manifest, in that order.
void require_tensors(const LayerReader& reader, const ManifestLayer& layer, const fs::path& path) {
  const std::vector<SafetensorsTensor>& stored = reader.header().tensors;
  const bool same = std::ranges::equal(stored, layer.tensors,
                                       [](const SafetensorsTensor& s, const ManifestTensor& m) {
                                         return s.name == m.name && s.spec == m.spec;
                                       });
  if (!same) throw Error::input("its tensors are not as in the manifest").in_file(path.string());
}

OpenFile open_layer(const fs::path& directory, const ManifestLayer& layer) {
  const fs::path path = directory / layer.file;
  OpenFile file{path, LayerReader(path)};
  require_tensors(file.reader, layer, path);
  return file;
}

void read_piece(const OpenFile& file, int64_t from, int64_t bytes, UninitializedBytes& out) {
  out.resize(static_cast<size_t>(bytes));
  in_file(file.path.string(), [&] { file.reader.read(from, out); });
}

std::string hex(ConstBytes bytes) {
  std::string text = "0x";
  for (size_t i = bytes.size(); i-- > 0;) {
    text += fmt::format("{:02x}", std::to_integer<unsigned>(bytes[i]));
  }
  return text;
}

// "element [3, 0, 17]" of a tensor stored row by row.
std::string element_text(const Shape& shape, int64_t element) {
  std::vector<int64_t> place(shape.dims().begin(), shape.dims().end());
  for (size_t i = place.size(); i-- > 0;) {
    const int64_t dim = place[i];
    place[i] = element % dim;
    element /= dim;
  }
  return fmt::format("element {}", place);
}

std::optional<BlobDifference> compare_piece(const LayerPair& pair, const BlobPiece& piece,
                                            PieceBuffers& buffers) {
  const ManifestTensor& tensor = pair.layer.tensors[piece.tensor];
  const int64_t from = pair.first.reader.header().tensors[piece.tensor].begin + piece.begin;
  read_piece(pair.first, from, piece.bytes, buffers.first);
  read_piece(pair.second, from, piece.bytes, buffers.second);
  const auto differs = first_difference(buffers.first, buffers.second);
  if (!differs) return std::nullopt;
  const auto size = static_cast<size_t>(std::max<int64_t>(dtype_bits(tensor.spec.dtype) / 8, 1));
  const size_t at = *differs / size * size;
  const int64_t element = (piece.begin + static_cast<int64_t>(at)) / static_cast<int64_t>(size);
  return BlobDifference{tensor.name, element_text(tensor.spec.shape, element),
                        hex(ConstBytes(buffers.first).subspan(at, size)),
                        hex(ConstBytes(buffers.second).subspan(at, size))};
}

std::optional<BlobDifference> compare_tensors(const BlobRanks& first, const BlobRanks& second,
                                              size_t rank, const RunLimits& limits,
                                              const RunHooks& hooks) {
  std::vector<LayerPair> pairs;
  std::vector<BlobPiece> pieces;
  const std::vector<ManifestLayer>& layers = first.manifests[rank].layers;
  for (size_t l = 0; l < layers.size(); ++l) {
    pairs.push_back({layers[l], open_layer(first.directories[rank], layers[l]),
                     open_layer(second.directories[rank], second.manifests[rank].layers[l])});
    for (size_t t = 0; t < layers[l].tensors.size(); ++t) {
      const int64_t bytes = layers[l].tensors[t].spec.bytes();
      for (int64_t at = 0; at < bytes; at += kComparedBytes) {
        pieces.push_back(
            {static_cast<int64_t>(pieces.size()), l, t, at, std::min(kComparedBytes, bytes - at)});
      }
    }
  }
  std::optional<BlobDifference> found;
  SettledAt settled;
  run_jobs<BlobPiece, PieceBuffers>(
      pieces, limits_for(limits.memory, 2 * kComparedBytes, limits.threads),
      {.read = [&](const BlobPiece&, PieceBuffers&) { hooks.check_stop(); },
       .work =
           [&](const BlobPiece& piece, PieceBuffers& buffers) {
             buffers.difference.reset();
             buffers.failure = nullptr;
             if (settled.before(piece.number)) return;
             try {
               buffers.difference = compare_piece(pairs[piece.pair], piece, buffers);
             } catch (...) {
               buffers.failure = std::current_exception();
             }
             if (buffers.difference || buffers.failure) settled.lower_to(piece.number);
           },
       .finish =
           [&](const BlobPiece& piece, PieceBuffers& buffers) {
             if (found) return;
             if (buffers.failure) std::rethrow_exception(buffers.failure);
             found = std::move(buffers.difference);
             hooks.progress(2 * piece.bytes);
           }});
  return found;
}

}  // namespace

int64_t bytes_to_compare(const BlobRanks& first, const BlobRanks& second) {
  return data_bytes(first.manifests) + data_bytes(second.manifests);
}

BlobComparison compare_blobs(const BlobRanks& first, const BlobRanks& second,
                             const RunLimits& limits, const RunHooks& hooks) {
  BlobComparison comparison;
  comparison.notes = differing_notes(first.manifests.front(), second.manifests.front());
  FirstDifference whole("");
  whole.check("rank directories", first.directories.size(), second.directories.size());
  comparison.difference = whole.found();
  const size_t ranks = first.manifests.size();
  for (size_t rank = 0; rank < ranks && !comparison.difference; ++rank) {
    comparison.difference = compare_rank(first.manifests[rank], second.manifests[rank]);
  }
  for (size_t rank = 0; rank < ranks && !comparison.difference; ++rank) {
    comparison.difference = compare_tensors(first, second, rank, limits, hooks);
  }
  return comparison;
}

}  // namespace mxfp4
