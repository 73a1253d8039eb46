// A sound manifest for tests to change, and the message of the refusal that follows.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "formats/blob/manifest.hpp"
#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"

namespace mxfp4::test {

inline Manifest sample_manifest(const std::vector<int64_t>& layers = {0, 1}) {
  Manifest manifest;
  manifest.tool_version = "1.0";
  manifest.revision = "vllm-some";
  manifest.layout = "some/layout";
  manifest.decision.backend = Backend::MARLIN;
  manifest.decision.trace.push_back({"MarlinExperts", "key", true, ""});
  manifest.decision.trace.push_back({"Other", std::nullopt, false, "too old"});
  manifest.target.backend = Backend::MARLIN;
  manifest.target.arch = "sm90";
  manifest.style = "gpt_oss";
  manifest.compression.libzstd = "1.5.4";
  manifest.source.files.push_back({"model.safetensors", 77});
  manifest.warnings = {"from the plan"};
  for (int64_t index : layers) {
    ManifestLayer layer;
    layer.index = index;
    layer.prefix = "layers." + std::to_string(index);
    layer.file = layer_file_name(index, true);
    layer.size = 100 + index;
    layer.xxh3_128 = std::string(32, 'a');
    layer.recipe.layout = manifest.layout;
    layer.recipe.experts = {0, 1};
    layer.recipe.hidden_size = layer.recipe.padded_hidden_size = 64;
    layer.recipe.intermediate_end = layer.recipe.padded_intermediate_size = 64;
    const std::vector<int64_t> dims{2, 3};
    layer.tensors.push_back({layer.prefix + ".w",
                             {DType::kU8, Shape(std::span(dims))},
                             std::string(32, 'b'),
                             Storage{}});
    manifest.layers.push_back(layer);
  }
  return manifest;
}

inline std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error.what();
  }
  return "no error";
}

}  // namespace mxfp4::test
