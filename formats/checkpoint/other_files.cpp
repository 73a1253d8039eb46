#include "formats/checkpoint/other_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "formats/json/strict_json.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& path, std::string_view what, std::string_view hint) {
  throw Error::input(std::string(what)).in_file(path.string()).hint(std::string(hint));
}

}  // namespace

void refuse_pointer(const fs::path& path, ConstBytes first_bytes) {
  const auto* text = reinterpret_cast<const char*>(first_bytes.data());
  if (is_lfs_pointer({text, first_bytes.size()})) refuse(path, kLfsPointer, kFetchLfs);
}

void refuse_other_weights(const fs::path& path, const std::vector<std::string>& names) {
  const auto all = [&](const std::regex& form) {
    return !names.empty() && std::ranges::all_of(names, [&](const std::string& name) {
      return std::regex_match(name, form);
    });
  };
  static const std::regex kAdapter(R"(adapter_model.*\.safetensors)");
  if (all(kAdapter)) {
    refuse(path, "a LoRA adapter, not a model",
           "merge it into its base model first, in BF16, and quantize the result; or convert the "
           "base model and serve the adapter beside it");
  }
  // vLLM, model_loader/sharded_state_loader.py, DEFAULT_PATTERN.
  static const std::regex kState(R"(model-rank-\d+-part-\d+\.safetensors)");
  if (all(kState)) {
    refuse(path,
           "a state that vLLM saved (sharded_state), a file a rank: its weights are already "
           "processed for one backend",
           "give the checkpoint that was loaded");
  }
}

void refuse_hub_name(const fs::path& path) {
  std::error_code error;
  const std::string text = path.string();
  const bool two_parts = std::ranges::count(text, '/') == 1 && !text.starts_with('.') &&
                         path.has_filename() && !path.is_absolute();
  if (!two_parts || fs::exists(path, error) || fs::exists(path.parent_path(), error)) return;
  refuse(path, "no such file; it reads like a model's name on a hub",
         fmt::format("hf://{} is that model", text));
}

}  // namespace mxfp4
