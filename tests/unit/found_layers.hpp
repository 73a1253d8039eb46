// What tests of naming styles ask: why are these tensors refused, and does the text say so?
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/core/error.hpp"
#include "lib/load/expert_layer.hpp"

namespace mxfp4::test {

inline std::string refusal_of_layers(const std::vector<NamedTensor>& tensors,
                                     const ModelConfig* config, const FindOptions& options = {}) {
  try {
    (void)find_expert_layers(tensors, config, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

inline void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

}  // namespace mxfp4::test
