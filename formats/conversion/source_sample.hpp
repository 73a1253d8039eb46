// A blob names its checkpoint by what is in it. Of each layer it keeps a sample: a checksum over a
// few kilobytes of the experts as the checkpoint stores them, from places all over them. A fine-tune
// has the names and sizes of its base, but not its sample. What a sample cannot see is a change of so
// few bytes that it looks at none of them.
//
// The places follow from the bytes, each from those before it, so that two checkpoints are soon
// looked at in different places, and nobody has to keep which:
//
//   digest = XXH3-128 of the layer's prefix, as 32 hexadecimal digits
//   for each tensor of the layer's published form, by name, kSamplePlaces times:
//     a, b   = the first and the last 16 digits of digest, as numbers
//     size   = min(bytes of the tensor, kSampleBytes)
//     bytes  = `size` bytes of the tensor of expert a mod E,
//              from byte 64 (b mod ((bytes of the tensor - size) / 64 + 1)) on
//     digest = XXH3-128 of digest and bytes
//
// E is the number of experts with tensors of their own, or 1. The last digest is the sample. The
// container does not matter, only the tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "formats/blob/manifest.hpp"
#include "formats/source/source.hpp"

namespace mxfp4 {

inline constexpr int kSamplePlaces = 4;
inline constexpr int64_t kSampleBytes = 2048;

// Samples every layer that says how the checkpoint stores it and has no sample: a source that is a
// blob brings its checkpoint's. Throws Error::input naming file and tensor.
void take_samples(ModelLayers& model, Source& source);

// Whether each layer has a sample: older blobs have none.
[[nodiscard]] bool has_samples(const Manifest& manifest);

// How `source` differs from the checkpoint that the manifest's layers were made from, in words:
// "layer 3 is not the one that was converted". Compares SHA-256 of files where both know
// it, and the samples that there are. Throws like take_samples().
[[nodiscard]] std::optional<std::string> checkpoint_difference(const Manifest& manifest,
                                                               Source& source);

}  // namespace mxfp4
