// The tensors of the checkpoint that a blob was made from, and where their bytes are in its ranks:
// private to blob_source.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "formats/blob/manifest.hpp"
#include "formats/source/source.hpp"
#include "lib/load/expert_layer.hpp"

namespace mxfp4 {

// Bytes of a tensor in the checkpoint's matrix of one slot of one expert.
struct BlobPlace {
  size_t layer = 0;  // index into Manifest::layers
  Slot slot = Slot::kW13Weight;
  int64_t expert = -1;  // -1: of all experts, one behind another
  int64_t begin = 0;    // of the matrix
  int64_t bytes = 0;    // of one expert
};

// A rank's share of an expert.
struct ExpertHolder {
  size_t rank = 0;    // index into the manifests
  int64_t index = 0;  // of the expert in the rank
};

struct BlobLayer {
  ExpertLayer layer;  // sizes of the whole layer, and the types in which the checkpoint has them
  std::vector<std::vector<ExpertHolder>> holders;  // by expert; their shares tile the slots
  std::vector<RankSlice> slices;                   // by rank
};

struct BlobTensors {
  std::vector<SourceTensor> tensors;
  std::vector<BlobPlace> places;  // by tensor
  std::vector<BlobLayer> layers;  // as in the manifests
  ModelLayers model;              // the model's loader, family and order; `layers` stays empty
  std::vector<std::string> lost;  // biases whose checkpoint had more digits
};

// The manifest of a rank as if its slice without padding, in the loaded layout, were the whole
// checkpoint: layer-NNNNN.safetensors with the slots that its layout gives back.
[[nodiscard]] Manifest as_loaded(const Manifest& rank);

// `manifests`: of all ranks of `path`. Throws Error::input unless they are whole and agree.
[[nodiscard]] BlobTensors describe_blob_tensors(const std::filesystem::path& path,
                                                const std::vector<Manifest>& manifests);

}  // namespace mxfp4
