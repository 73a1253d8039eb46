#include "formats/decision/config_only.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "formats/checkpoint/raw_source.hpp"
#include "formats/checkpoint/safetensors_source.hpp"
#include "formats/config/config_json.hpp"
#include "formats/json/python_json.hpp"
#include "formats/json/strict_json.hpp"
#include "formats/source/source.hpp"
#include "lib/core/error.hpp"
#include "lib/load/imagined.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

// Whether the directory has weights in any format: other programs' formats are refused in words of
// their own. An index without one of its files came with the other small files.
bool holds_weights(const fs::path& dir) {
  constexpr std::array<std::string_view, 9> kSuffixes = {
      ".safetensors", ".bin", ".pt", ".pth", ".gguf", ".h5", ".hdf5", ".npz", ".ckpt"};
  std::error_code ignored;
  return std::ranges::any_of(fs::directory_iterator(dir, ignored), [&](const auto& entry) {
    return std::ranges::find(kSuffixes, entry.path().extension().string()) != kSuffixes.end();
  });
}

// Whether the file's text is a model's config: an object that is neither a raw dump's manifest nor
// a checkpoint's index.
bool is_config(const fs::path& file) {
  try {
    const std::string text = read_text_file(file, kMaxConfigBytes);
    if (text.find_first_not_of(" \t\r\n") == std::string::npos) return false;
    if (text[text.find_first_not_of(" \t\r\n")] != '{' || is_raw_manifest(file)) return false;
    const auto json = parse_python_config(text);
    return json.contains("model_type") || json.contains("architectures") ||
           json.contains("quant_method") || json.contains("rope_ntk_alpha");
  } catch (const Error&) {
    return file.filename() == kConfigName;  // its reader says what is wrong
  }
}

}  // namespace

std::optional<fs::path> config_without_weights(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    const fs::path config = path / kConfigName;
    const bool alone = fs::is_regular_file(config, ignored) && !holds_weights(path) &&
                       !fs::exists(path / "manifest.json", ignored);
    if (alone) return config;
    return std::nullopt;
  }
  if (!fs::is_regular_file(path, ignored) || !is_config(path)) return std::nullopt;
  return path;
}

std::shared_ptr<Source> open_config(const std::string& text, const fs::path& file) {
  SourceContents contents{.kind = kConfigKind, .config_json = text};
  for (NamedTensor& tensor : imagine_tensors(parse_model_config(text, file.string()))) {
    contents.tensors.push_back({std::move(tensor.name), tensor.spec, std::move(tensor.file)});
  }
  std::error_code ignored;
  if (fs::is_regular_file(file, ignored)) contents.files.push_back(describe_file(file));
  return std::make_shared<Source>(std::move(contents));
}

}  // namespace mxfp4
