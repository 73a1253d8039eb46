// A quantization that a model's directory keeps in a file of its own: hf_quant_config.json, as
// older ModelOpt writes it.
#pragma once

#include <filesystem>
#include <string_view>

namespace mxfp4 {

inline constexpr const char* kSeparateQuantization = "hf_quant_config.json";

// The engine reads that file of `directory` where config.json, whose text is `config`, has no
// quantization_config at its top, and then takes no other (vLLM 0.33.0,
// transformers_utils/config.py). Throws Error::input naming the file and its algorithm there: none
// of them means MXFP4 experts. Does nothing where the engine does not read it.
void refuse_separate_quantization(std::string_view config, const std::filesystem::path& directory);

}  // namespace mxfp4
