#include "formats/config/separate_quantization.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <system_error>

#include "formats/config/quantization_members.hpp"
#include "formats/config/quantization_rules.hpp"
#include "formats/json/python_json.hpp"
#include "formats/json/strict_json.hpp"
#include "formats/os/file.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {

void refuse_separate_quantization(std::string_view config, const std::filesystem::path& file,
                                  const std::function<std::optional<std::string>()>& read) {
  using Json = nlohmann::ordered_json;
  const Json model = parse_python_config(config);
  const bool original_gpt_oss = model.contains("rope_ntk_alpha");
  if (original_gpt_oss || model.contains("quant_method")) return;  // no config of a hub's model
  if (!member_of(model, "quantization_config").is_null()) return;
  in_file(file.string(), [&] {
    const std::optional<std::string> text = read();
    if (!text) return;
    const Json quantization = parse_python_config(*text);
    if (!quantization.is_object()) throw Error::input("expected a JSON object");
    static_cast<void>(read_quantization({&quantization, nullptr, {}, "the quantization"}));
    throw Error::input("the engine takes the quantization of this file, since config.json has none")
        .hint("put it into config.json, as quantization_config");
  });
}

void refuse_separate_quantization(std::string_view config, const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / kSeparateQuantization;
  refuse_separate_quantization(config, file, [&]() -> std::optional<std::string> {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(file, ignored)) return std::nullopt;
    return read_text_file(file, kMaxSeparateQuantization);
  });
}

}  // namespace mxfp4
