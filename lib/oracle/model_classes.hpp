// What the engine's own class of a model gives its experts, whatever the model's config says. The
// rows were read out of the wheels of several releases (tests/engines/models.py), and a test
// compares them with what was read (testdata/engines/models.json).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace mxfp4 {

// The architectures, as config.json names them, whose classes give experts one activation.
struct ModelClasses {
  std::string_view activation;  // empty: the one that the config names
  bool by_layer = false;        // layers with an entry in swiglu_limits run swiglustep instead
  std::span<const std::string_view> architectures;
};

[[nodiscard]] std::span<const ModelClasses> model_classes();

// The name of the class that serves an architecture: its own, or a model's whose words about the task
// the engine replaces, as "GptOssForSequenceClassification" (config/model.py,
// iter_architecture_defaults). Empty where no release that was read has one with experts.
[[nodiscard]] std::string known_architecture(std::string_view architecture);

// The row of an architecture's class; null for one that no release that was read has.
[[nodiscard]] const ModelClasses* find_model_class(std::string_view architecture);

}  // namespace mxfp4
