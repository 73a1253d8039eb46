#include "formats/config/quantization_override.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "formats/json/json_fields.hpp"
#include "formats/json/python_json.hpp"
#include "formats/os/file.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {
namespace {

constexpr int64_t kMaxFileBytes = 1 << 20;

QuantizationOverride read_flag(std::string_view flag) {
  const size_t first = flag.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && (flag[first] == '{' || flag.substr(first) == "null")) {
    return parse_quantization_config(flag);
  }
  const std::filesystem::path path(flag);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    throw Error::input("neither a JSON object nor a file").in_file(shown(flag));
  }
  return in_file(flag,
                 [&] { return parse_quantization_config(read_text_stream(path, kMaxFileBytes)); });
}

}  // namespace

QuantizationOverride parse_quantization_config(std::string_view json) {
  const nlohmann::json value = parse_python_json(json);
  QuantizationOverride out;
  if (value.is_null()) return out;
  const JsonFields config(value);
  if (config.has("moe") && config.at("moe").is_string()) {
    out.weight = config.string("moe");
  } else if (config.has("moe")) {
    const JsonFields moe = config.object("moe");
    if (moe.has("weight")) out.weight = moe.string("weight");
    if (moe.has("activation")) out.activation = moe.string("activation");
    moe.only();
  }
  config.only({"linear", "ignore", "targets"});
  return out;
}

QuantizationOverride read_quantization_config(std::string_view flag) {
  try {
    return read_flag(flag);
  } catch (Error& error) {
    error.at_key("--quantization-config");
    throw;
  }
}

}  // namespace mxfp4
