#include "formats/checkpoint/other_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "formats/json/strict_json.hpp"
#include "formats/os/directory.hpp"
#include "formats/os/positioned_file.hpp"
#include "formats/safetensors/safetensors_header.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSafetensorsHint =
    "download or export the model as safetensors, with its config.json";
constexpr std::string_view kPickled =
    "a PyTorch archive of pickled tensors; this program does not read it";
constexpr std::string_view kGguf =
    "a GGUF file, as llama.cpp reads; this program does not repack it";

constexpr std::string_view kAdapterOnly = "a LoRA adapter, not a model";
constexpr std::string_view kMergeAdapter =
    "merge it into its base model first, in BF16, and quantize the result; or convert the base "
    "model and serve the adapter beside it";

std::string_view as_text(ConstBytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// What a file of another program is that begins so; empty for others.
std::string_view what_begins(ConstBytes bytes) {
  const std::string_view text = as_text(bytes).substr(0, static_cast<size_t>(kTellingBytes));
  if (text.starts_with("GGUF")) return kGguf;
  // The length of a safetensors header may begin as a pickle or a zip archive does.
  if (begins_as_safetensors(bytes)) return "";
  // A pickle says its protocol, 2 to 5; newer ones lie in a zip archive.
  if (text.size() > 2 && text[0] == '\x80' && text[1] >= 2 && text[1] <= 5) return kPickled;
  return text.starts_with(std::string_view{"PK\x03\x04", 4}) ? kPickled : "";
}

// The first bytes of a file; empty if it cannot be read.
std::vector<std::byte> telling_bytes(const fs::path& path) {
  try {
    const PositionedFile file(path);
    std::vector<std::byte> bytes(static_cast<size_t>(std::min(file.size(), kTellingBytes)));
    file.read(0, bytes);
    return bytes;
  } catch (const Error&) {
    return {};
  }
}

// Whether the path ends as a file's name does; a model's name has none of these suffixes.
bool is_file_name(const fs::path& path) {
  static const std::set<std::string> kSuffixes = {".safetensors", ".zst", ".json", ".h5", ".hdf5"};
  return kSuffixes.contains(path.extension().string());
}

[[noreturn]] void refuse(const fs::path& path, std::string_view what, std::string_view hint) {
  throw Error::input(std::string(what)).in_file(path.string()).hint(std::string(hint));
}

}  // namespace

void refuse_other_file(const fs::path& path, ConstBytes first_bytes) {
  const std::string_view text = as_text(first_bytes);
  if (is_lfs_pointer(text)) refuse(path, kLfsPointer, kFetchLfs);
  if (is_web_page(text)) {
    refuse(path, "a web page, not safetensors", "is it a failed download? fetch the file again");
  }
  const std::string_view what = what_begins(first_bytes);
  if (!what.empty()) refuse(path, what, kSafetensorsHint);
}

void refuse_other_directory(const fs::path& directory) {
  std::error_code error;
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : list_directory(directory, error)) {
    std::error_code ignored;
    if (entry.is_regular_file(ignored)) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  for (const fs::path& file : files) {
    if (file.filename() == "adapter_config.json") refuse(directory, kAdapterOnly, kMergeAdapter);
  }
  for (const fs::path& file : files) {
    if (file.extension() != ".json") refuse_other_file(file, telling_bytes(file));
  }
}

void refuse_other_weights(const fs::path& path, const std::vector<std::string>& names) {
  std::error_code error;
  const auto all = [&](const std::regex& form) {
    return !names.empty() && std::ranges::all_of(names, [&](const std::string& name) {
      return std::regex_match(name, form);
    });
  };
  static const std::regex kAdapter(R"(adapter_model.*\.safetensors)");
  if (all(kAdapter)) refuse(path, kAdapterOnly, kMergeAdapter);
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
                         path.has_filename() && !path.is_absolute() && !is_file_name(path);
  if (!two_parts || fs::exists(path, error) || fs::exists(path.parent_path(), error)) return;
  refuse(path, "no such file; it reads like a model's name on a hub",
         fmt::format("hf://{} is that model", text));
}

}  // namespace mxfp4
