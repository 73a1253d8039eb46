#include "formats/json/packed_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "formats/json/python_json.hpp"
#include "formats/json/strict_json.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kMethod = "quant_method";

// The member `key` if it is an object, else null.
Json* object_at(Json& parent, const char* key) {
  const auto found = parent.find(key);
  return found != parent.end() && found->is_object() ? &*found : nullptr;
}

bool is_packed(const Json& quantization) {
  const auto method = quantization.find(kMethod);
  return method != quantization.end() && *method == kPackedQuantMethod;
}

// The method's name as the engines spell it before they look it up: "Compressed_Tensors" is
// compressed-tensors (vLLM 0.33.0, transformers_utils/model_arch_config_convertor.py; SGLang's
// configs/model_config.py does the first half).
void usual_spelling(Json& quantization) {
  const auto method = quantization.find(kMethod);
  if (method == quantization.end() || !method->is_string()) return;
  std::string name = method->get<std::string>();
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  constexpr std::string_view kOther = "compressed_tensors";
  const size_t at = name.find(kOther);
  if (at != std::string::npos) name.replace(at, kOther.size(), "compressed-tensors");
  *method = name;
}

}  // namespace

Json* find_quantization(Json& config, std::string& where) {
  where = "quantization_config";
  if (config.contains(kMethod)) return &config;
  if (Json* found = object_at(config, "quantization_config")) return found;
  if (Json* nested = object_at(config, "text_config")) {
    where = "text_config.quantization_config";
    if (Json* found = object_at(*nested, "quantization_config")) return found;
  }
  where = "compression_config";
  return object_at(config, "compression_config");
}

std::string packed_config_text(std::string_view text) {
  std::string mark = "python ";
  while (text.find(mark) != std::string_view::npos) mark += ' ';
  Json config = parse_python_config(text, mark);
  if (!config.is_object()) {
    throw Error::input(fmt::format("expected a JSON object, found {}", config.type_name()));
  }
  std::string where;
  Json* quantization = find_quantization(config, where);
  if (quantization == nullptr) {
    config["quantization_config"] = {{kMethod, kPackedQuantMethod}};
  } else if (is_packed(*quantization)) {
    return std::string(text);
  } else {
    Json& method = (*quantization)[kMethod];
    Json own = std::exchange(method, kPackedQuantMethod);
    if (!own.is_null()) (*quantization)[std::string(kOwnQuantMethodKey)] = std::move(own);
  }
  return unquote_python_constants(config.dump(2), mark) + "\n";
}

void restore_quantization(Json& config) {
  std::string where;
  Json* quantization = find_quantization(config, where);
  if (quantization == nullptr) return;
  if (!is_packed(*quantization)) return usual_spelling(*quantization);
  const std::string key(kOwnQuantMethodKey);
  const auto own = quantization->find(key);
  if (own == quantization->end()) {
    // The checkpoint's own config.json named no quantization.
    if (quantization->size() == 1 && quantization != &config) config.erase("quantization_config");
    return;
  }
  if (!own->is_string()) {
    throw Error::input(
        fmt::format("{}.{}: expected a string, found {}", where, key, own->type_name()));
  }
  (*quantization)[kMethod] = *own;
  quantization->erase(key);
  usual_spelling(*quantization);
}

}  // namespace mxfp4
