// A quantization that a model's directory keeps in a file of its own: hf_quant_config.json, as
// older ModelOpt writes it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace mxfp4 {

inline constexpr const char* kSeparateQuantization = "hf_quant_config.json";

inline constexpr int64_t kMaxSeparateQuantization = int64_t{16} << 20;

// The engine reads that file where config.json beside it, whose text is `config`, has no
// quantization_config at its top, and then takes no other (vLLM 0.33.0,
// transformers_utils/config.py). Throws Error::input naming `file` and its algorithm there: none of
// them means MXFP4 experts. Does nothing where the engine does not read it. `read` gives the file's
// text, empty if there is none, and is asked only where the engine would.
void refuse_separate_quantization(std::string_view config, const std::filesystem::path& file,
                                  const std::function<std::optional<std::string>()>& read);
// The same of a directory on this machine.
void refuse_separate_quantization(std::string_view config, const std::filesystem::path& directory);

}  // namespace mxfp4
