// What the engine's own class of a model gives its experts, whatever the model's config says. The
// rows were read out of the wheels of several releases (tests/engines/models.py), and a test
// compares them with what was read (testdata/engines/models.json).
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace mxfp4 {

// A class, by the architecture that config.json names, and the activation that it gives experts.
struct ModelClass {
  std::string architecture;
  std::string activation;  // empty: the one that the config names
  bool by_layer = false;   // layers with an entry in swiglu_limits run swiglustep instead
};

[[nodiscard]] std::span<const ModelClass> model_classes();

// The name of the class that serves an architecture: its own, or a model's whose words about the task
// the engine replaces, as "GptOssForSequenceClassification" (config/model.py,
// iter_architecture_defaults). Empty where no release that was read has one with experts.
[[nodiscard]] std::string known_architecture(std::string_view architecture);

// The row of an architecture's class; null for one that no release that was read has.
[[nodiscard]] const ModelClass* find_model_class(std::string_view architecture);

}  // namespace mxfp4
