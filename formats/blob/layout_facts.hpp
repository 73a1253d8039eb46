// Checks what a manifest says of its tensors. All of it follows from the layout, sizes and target,
// so none of it has to be trusted.
#pragma once

#include <vector>

#include "formats/blob/manifest.hpp"
#include "lib/layouts/output.hpp"

namespace mxfp4 {

// The manifest's layout; null if the blob stops at the loaded layout. Throws Error::input if this
// program does not know the layout.
[[nodiscard]] const Layout* layout_of(const Manifest& manifest);

// The outputs of the manifest's layout for one of its layers.
[[nodiscard]] std::vector<Output> outputs_of(const Manifest& manifest, const ManifestLayer& layer);

// Throws Error::input, naming the first key that differs, unless names, types, shapes and storage
// of all tensors are the layout's, the kernel library is the layout's, and, if this program knows
// the revision, the layout and the engine's commit are the revision's.
void check_layout_facts(const Manifest& manifest);

}  // namespace mxfp4
