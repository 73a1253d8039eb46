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
#include "lib/core/error.hpp"
#include "lib/load/imagined.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

class ConfigSource final : public Source {
 public:
  ConfigSource(std::string text, const fs::path& file) : text_(std::move(text)) {
    const ModelConfig config = parse_model_config(text_, file.string());
    for (NamedTensor& tensor : imagine_tensors(config)) {
      tensors_.push_back({std::move(tensor.name), tensor.spec, std::move(tensor.file)});
    }
    std::error_code ignored;
    if (fs::is_regular_file(file, ignored)) files_.push_back(describe_file(file));
  }

  [[nodiscard]] std::string_view kind() const override { return kConfigKind; }
  [[nodiscard]] const std::vector<SourceTensor>& tensors() const override { return tensors_; }
  void read(size_t /*index*/, int64_t /*offset*/, MutableBytes /*out*/) override {
    throw Error::internal("a config holds no weights");
  }
  [[nodiscard]] const std::map<std::string, std::string>& attributes() const override {
    return attributes_;
  }
  [[nodiscard]] std::optional<std::string> config_json() const override { return text_; }
  [[nodiscard]] const std::vector<FileStatus>& files() const override { return files_; }

 private:
  std::string text_;
  std::vector<SourceTensor> tensors_;
  std::map<std::string, std::string> attributes_;
  std::vector<FileStatus> files_;
};

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
  return std::make_shared<ConfigSource>(text, file);
}

}  // namespace mxfp4
