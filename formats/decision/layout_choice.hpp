// The layout of a conversion: which one the release has for the target, and whether that layout can
// take the checkpoint. A part of decide.hpp; all throw what decide_conversion makes its refusal.
#pragma once

#include "formats/decision/conversion.hpp"
#include "formats/decision/open_checkpoint.hpp"

namespace mxfp4 {

// The layout of `conversion.row`. Throws Error::unsupported if the release has none for the target,
// with what to do instead; Error::usage if the layout depends on an architecture that is not known.
[[nodiscard]] const Layout* require_layout(const Conversion& conversion);

// Throws unless the layout accepts every layer of every rank. Each distinct size is checked once.
void check_preconditions(const Conversion& conversion, const ModelLayers& model);

// Throws Error::unsupported if the layout cannot hold some of the checkpoint's scales. Reads all of
// them, but only for a layout that refuses some; so no conversion fails halfway.
void check_scales(const Conversion& conversion, const OpenedCheckpoint& checkpoint);

}  // namespace mxfp4
