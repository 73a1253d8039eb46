// AutoRound's quantization config (vLLM: INC).
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "formats/config/quantization_members.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {
namespace {

using Json = nlohmann::ordered_json;

// Empty when the weights that `spec` describes are MXFP4; what it lacks, `root` says.
std::string bits_refusal(const Json& spec, const Json& root, const std::string& where) {
  const auto value = [&](const char* key) -> const Json& {
    const Json& own = member_of(spec, key);
    return own.is_null() ? member_of(root, key) : own;
  };
  if (value("bits") != 4) return refused_value(where, "bits", value("bits"), "4");
  if (value("group_size") != 32) {
    return refused_value(where, "group_size", value("group_size"), "32");
  }
  return {};
}

}  // namespace

void read_auto_round(const QuantizationJson& text, Quantization& /*method*/) {
  const Json& root = *text.quantization;
  const Json& type = member_of(root, "data_type");
  if (!type.is_string() || type.get_ref<const std::string&>().find("mx_fp") == std::string::npos) {
    throw Error::input(
        refused_value(text.where, "data_type", type, "mx_fp: other weights are not MXFP4"));
  }
  const Json& packing = member_of(root, "packing_format");
  if (!packing.is_null() && packing != "auto_round:llm_compressor") {
    throw Error::input(
        refused_value(text.where, "packing_format", packing, "auto_round:llm_compressor"));
  }
  std::string refusal = bits_refusal(root, root, text.where);
  // Experts may have bits of their own; a number may be a layer's.
  if (const Json& modules = member_of(root, "extra_config"); modules.is_object()) {
    for (const auto& [name, spec] : modules.items()) {
      if (name.find("experts") == std::string::npos || !spec.is_object()) continue;
      const std::string own =
          bits_refusal(spec, root, fmt::format("{}.extra_config.{}", text.where, shown(name)));
      if (own.empty() || std::ranges::none_of(name, is_digit)) refusal = own;
    }
  }
  if (!refusal.empty()) throw Error::input(refusal);
}

}  // namespace mxfp4
