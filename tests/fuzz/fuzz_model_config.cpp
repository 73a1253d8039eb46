// libFuzzer target: any text as each of the JSON files beside a checkpoint: config.json, only its
// quantization_config, the engine's override of it, the index of safetensors files.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "formats/config/config_json.hpp"
#include "formats/config/quantization_override.hpp"
#include "formats/safetensors/weight_map.hpp"
#include "tests/fuzz/fuzz_input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using mxfp4::fuzz::only_input_errors;
  const std::string text(mxfp4::fuzz::text_of(data, size));
  const std::string config = R"({"model_type": "gpt_oss", "quantization_config": )" + text + "}";
  only_input_errors([&] { (void)mxfp4::parse_model_config(text, "config.json"); });
  only_input_errors([&] { (void)mxfp4::parse_model_config(config, "config.json"); });
  only_input_errors([&] { (void)mxfp4::parse_quantization_config(text); });
  only_input_errors([&] {
    for (const auto& [tensor, file] : mxfp4::parse_weight_map(text)) {
      if (file.find('/') != std::string::npos) std::abort();
    }
  });
  return 0;
}
