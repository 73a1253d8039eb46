// The form in which a checkpoint stores the experts of one layer: the names, types, shapes and
// files of its tensors, and a sample of their bytes. A blob keeps it, so that the checkpoint's tensors
// can be made from the blob again, and so that the checkpoint is known again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/core/tensor.hpp"

namespace mxfp4 {

// A tensor of every expert, or of all experts of the layer. `tail` follows "<prefix>.<expert>." in
// the first case and "<prefix>." in the second: "gate_proj.weight", "gate_up_proj_blocks".
struct PublishedTensor {
  std::string tail;
  TensorSpec spec;
  friend bool operator==(const PublishedTensor&, const PublishedTensor&) = default;
};

// The next `tensors` tensors lie in this file of the checkpoint, without its directory.
struct PublishedRun {
  std::string file;
  int64_t tensors = 0;
  friend bool operator==(const PublishedRun&, const PublishedRun&) = default;
};

struct PublishedLayer {
  int64_t intermediate_size = 0;  // of the whole layer
  int64_t experts = 0;            // with tensors of their own; 0: all experts share each tensor
  std::vector<PublishedTensor> tensors;  // in the order of the first expert
  // The runs of all tensors, expert by expert; empty where the checkpoint is not made of
  // safetensors files.
  std::vector<PublishedRun> runs;
  // Of the experts' bytes: formats/conversion/source_sample.hpp. Empty: not taken.
  std::string sample{};

  friend bool operator==(const PublishedLayer&, const PublishedLayer&) = default;
};

}  // namespace mxfp4
