// What a manifest says of its tensors follows from its layout, sizes and target: nothing of it is
// believed.
#pragma once

#include <vector>

#include "formats/blob/manifest.hpp"
#include "lib/layouts/layout.hpp"

namespace mxfp4 {

// The manifest's layout; null where the blob stops at the loaded one. Throws Error::input where this
// program does not know it.
[[nodiscard]] const Layout* layout_of(const Manifest& manifest);

// What the manifest's layout writes for one of its layers.
[[nodiscard]] std::vector<Output> outputs_of(const Manifest& manifest, const ManifestLayer& layer);

// Throws Error::input, naming the first key that differs, unless names, types, shapes and storage of
// all tensors are those that the layout gives, and the layout, the engine's commit and the kernel
// library are those of the revision, where this program knows it.
void check_layout_facts(const Manifest& manifest);

}  // namespace mxfp4
