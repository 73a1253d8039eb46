#include "apps/serve_line.hpp"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "apps/options.hpp"
#include "apps/text_layout.hpp"
#include "formats/blob/blob_reader.hpp"
#include "formats/decision/fits.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kBeside =
    "-mxfp4_repack";  // the name of a blob that is found, after MODEL's

// How each engine calls what convert was asked with. Empty: it has no such flag, and follows other
// facts; then convert asks because it cannot see them.
struct ServeRow {
  std::string_view convert;  // as a member of the request
  std::string_view vllm;
  std::string_view sglang;
};
constexpr std::array<ServeRow, 9> kServeFlags = {{
    {"tp_size", "--tensor-parallel-size", "--tp-size"},
    {"pcp_size", "--prefill-context-parallel-size", ""},
    {"dp_size", "--data-parallel-size", ""},
    {"enable_expert_parallel", "--enable-expert-parallel", ""},
    {"all2all_backend", "--all2all-backend", "--moe-a2a-backend"},
    {"enable_eplb", "--enable-eplb", "--enable-eplb"},
    {"expert_placement", "--expert-placement-strategy", ""},
    {"enable_lora", "--enable-lora", "--enable-lora"},
    {"moe_backend", "--moe-backend", "--moe-runner-backend"},
}};

// The engine's words for a member of the request; empty if it has none, or the member is not set.
std::string engines_flag(const std::string& member, const json& value, const Served& served) {
  const bool vllm = served.engine == Engine::kVllm;
  if (value == json(false)) return "";
  const std::string text = value.is_boolean()  ? ""
                           : value.is_string() ? shell_word(value.get<std::string>())
                                               : value.dump();
  if (member == "num_redundant_experts") {
    return vllm ? fmt::format("--eplb-config '{{\"num_redundant_experts\": {}}}'", text)
                : fmt::format("--ep-num-redundant-experts {}", text);
  }
  // SGLang says by a size that ranks hold whole experts.
  if (member == "enable_expert_parallel" && !vllm) {
    return fmt::format("--ep-size {}", json::parse(served.asked).value("tp_size", 1));
  }
  for (const ServeRow& row : kServeFlags) {
    if (row.convert != member) continue;
    const std::string_view flag = vllm ? row.vllm : row.sglang;
    return flag.empty() || text.empty() ? std::string(flag) : fmt::format("{} {}", flag, text);
  }
  return "";
}

// A blob may hold any text; what is no variable's name could not be quoted in front of a command.
bool is_variable(std::string_view name) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
  return !name.empty() && (name.front() < '0' || name.front() > '9') &&
         name.find_first_not_of(kLetters) == std::string_view::npos;
}

fs::path without_slash(const fs::path& path) {
  return path.has_filename() ? path : path.parent_path();
}

// Variables of the engine's process, a part each.
std::vector<std::string> variables(const Served& served, const json& asked) {
  std::vector<std::string> out;
  const json env = asked.value("env", json::object());
  for (const auto& [name, value] : env.items()) {
    if (is_variable(name)) {
      out.push_back(fmt::format("{}={}", name, shell_word(value.get<std::string>())));
    }
  }
  if (served.engine != Engine::kSglang) return out;
  out.push_back(fmt::format("MXFP4_REPACK_BLOB={}",
                            served.blob.empty() ? "none" : shell_word(served.blob.string())));
  if (served.blob.empty()) out.emplace_back("MXFP4_REPACK_SOURCE=checkpoint");
  if (!served.compared) out.emplace_back("MXFP4_REPACK_SOURCE=trust");
  out.emplace_back("MXFP4_REPACK_SKIP_RAW=1");
  return out;
}

}  // namespace

std::string served_name(const fs::path& model) {
  constexpr std::string_view kHub = "hf://";
  std::string name = model.string();
  const bool address = name.find("://") != std::string::npos;
  if (name.empty() || (address && !name.starts_with(kHub))) return "MODEL";
  if (!name.starts_with(kHub)) return shell_word(name);
  name.erase(0, kHub.size());
  const size_t at = name.find('@');
  if (at == std::string::npos) return shell_word(name);
  return fmt::format("{} --revision {}", shell_word(name.substr(0, at)),
                     shell_word(name.substr(at + 1)));
}

std::vector<std::string> serve_line(const Served& served) {
  const json asked = json::parse(served.asked);
  const bool vllm = served.engine == Engine::kVllm;
  std::vector<std::string> parts = variables(served, asked);
  if (vllm) {
    parts.push_back(fmt::format("vllm serve {}", served.model));
  } else {
    parts.emplace_back("python3 -m sglang.launch_server");
    parts.push_back(fmt::format("--model-path {}", served.model));
  }
  if (vllm) {
    parts.emplace_back("--load-format mxfp4_repack");
    json extra = json::object();
    if (!served.blob.empty() && !served.found) extra["blob"] = served.blob.string();
    if (!served.compared) extra["source"] = "trust";
    if (!extra.empty()) {
      parts.push_back(
          fmt::format("--model-loader-extra-config {}",
                      shell_word(extra.dump(-1, ' ', false, json::error_handler_t::replace))));
    }
  }
  for (const auto& [member, value] : asked.items()) {
    if (std::string words = engines_flag(member, value, served); !words.empty()) {
      parts.push_back(words);
    }
  }
  const json moe = override_in(asked);
  if (vllm && !moe.is_null()) {
    parts.push_back(fmt::format("--quantization-config {}", shell_word(moe.dump())));
  }
  return parts;
}

fs::path model_to_serve(const Source& source, const fs::path& path) {
  std::error_code ignored;
  const bool checkpoint = source.kind() == "safetensors";
  return checkpoint && (source.is_far() || fs::is_directory(path, ignored)) ? path : fs::path();
}

std::vector<std::string> serve_line(const Manifest& manifest, const fs::path& path,
                                    const fs::path& model) {
  const std::optional<std::string> name = moe_backend_for(manifest);
  if (!name) return {};
  json asked = json::parse(manifest.asked);
  if (*name != "auto") asked["moe_backend"] = *name;
  const std::string text = asked.dump();
  fs::path blob = without_slash(path);
  if (is_rank_directory(blob.filename().string())) blob = blob.parent_path();
  Served served{.engine = manifest.engine,
                .asked = text,
                .model = served_name(model),
                .blob = blob,
                .compared = manifest.source.kind == "safetensors"};
  std::error_code ignored;
  if (blob.filename() == kBlobFolder && blob.has_parent_path()) blob = blob.parent_path();
  const std::string place = blob.string();
  if (!manifest.rest.empty() || blob != served.blob ||
      fs::is_directory(blob / kBlobFolder, ignored)) {
    served.model = shell_word(place);  // the blob lies in the model, or is it
    served.found = true;
  } else if (place.ends_with(kBeside) && place.size() > kBeside.size()) {
    served.model = shell_word(place.substr(0, place.size() - kBeside.size()));
    served.found = true;
  }
  return serve_line(served);
}

void say_serve(const std::vector<std::string>& parts, const Console& console) {
  if (parts.empty()) return;
  std::string out;
  append_command(out, "serve: ", 7, parts);
  console.say_lines(out);
}

}  // namespace mxfp4
