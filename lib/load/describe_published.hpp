// From a checkpoint's tensors to the form in which it publishes them, and back.
#pragma once

#include <string_view>
#include <vector>

#include "lib/load/expert_layer.hpp"

namespace mxfp4 {

// Sets ExpertLayer::published of every layer, and ModelLayers::left_out. `tensors` is the list that
// find_expert_layers was given. A layer whose experts differ in more than their numbers gets none.
void describe_published(ModelLayers& model, const std::vector<NamedTensor>& tensors);

// The inverse: every tensor of the layer, expert by expert. `file` is empty without runs. Throws
// Error::input unless the runs are as many as the tensors.
[[nodiscard]] std::vector<NamedTensor> published_tensors(std::string_view prefix,
                                                         const PublishedLayer& layer);

}  // namespace mxfp4
