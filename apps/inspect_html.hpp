// inspect --html: one page about a blob. The page needs no other file and runs no script.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "apps/inspect_tensors.hpp"
#include "formats/blob/manifest.hpp"

namespace mxfp4 {

// One rank of the blob that the page is about.
struct PageRank {
  std::string directory;  // its name
  Manifest manifest;
  std::vector<LayerTensor> tensors;  // of all layers
};

// The page shows what the blob was made for, sizes by kind of tensor, padding, the decision with
// its trace, and every tensor. `ranks`: at least one. All text from the blob is escaped.
[[nodiscard]] std::string blob_page(const std::filesystem::path& blob,
                                    const std::vector<PageRank>& ranks);

}  // namespace mxfp4
