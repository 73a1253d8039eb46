#include "apps/explain/explain_start.hpp"

#include <fmt/format.h>

#include "formats/checkpoint/blob_source.hpp"
#include "lib/layouts/output.hpp"

namespace mxfp4 {

std::optional<StartSource> start_source(const Conversion& conversion, const Source* source) {
  if (conversion.refusal || conversion.layout == nullptr) return std::nullopt;
  if (conversion.rules->engine != Engine::kVllm)
    return std::nullopt;  // its plug-in takes some paths only
  if (source != nullptr && source->kind() == kBlobKind)
    return std::nullopt;  // there is one already
  // formats/loader makes layers from safetensors files only.
  if (source != nullptr && source->kind() != "safetensors") {
    return StartSource{
        true, fmt::format("a start makes weights of safetensors only, not of {}", source->kind())};
  }
  if (source != nullptr && source->is_far() && !source->files().empty() &&
      !source->files().front().path.string().starts_with("hf://")) {
    return StartSource{true, "the engine starts from a directory or a hub's model"};
  }
  // Layouts that quantise again look at all scales of a matrix first, and round each code.
  if (refuses_scales(*conversion.layout)) {
    return StartSource{true, "this layout quantises again, which is slower than reading"};
  }
  return StartSource{};
}

}  // namespace mxfp4
