#include "formats/checkpoint/other_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "formats/blob/blob_reader.hpp"
#include "formats/json/strict_json.hpp"
#include "formats/os/directory.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

struct OtherKind {
  std::string_view begins;  // a file's first bytes
  std::string_view suffix;  // of a file's name
  std::string_view what;
  std::string_view hint;
};
constexpr std::string_view kSafetensorsHint =
    "download or export the model as safetensors, with its config.json";
constexpr std::array kOtherKinds = {
    OtherKind{"GGUF", ".gguf", "a GGUF file, as llama.cpp reads; this program does not repack it",
              kSafetensorsHint},
    OtherKind{{"PK\x03\x04", 4},
              ".bin",
              "a PyTorch archive of pickled tensors; this program does not read it",
              kSafetensorsHint},
};

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
  in_file(path.string(), [&] {
    refuse_other_text({reinterpret_cast<const char*>(first_bytes.data()), first_bytes.size()});
  });
}

void refuse_other_text(std::string_view text) {
  if (const std::string_view coding = other_coding(text); coding.starts_with("compressed")) {
    throw Error::input(std::string(coding)).hint("decompress it first");
  }
  if (is_lfs_pointer(text)) throw Error::input(kLfsPointer).hint(kFetchLfs);
  for (const OtherKind& kind : kOtherKinds) {
    if (text.starts_with(kind.begins)) {
      throw Error::input(std::string(kind.what)).hint(std::string(kind.hint));
    }
  }
}

void refuse_other_directory(const fs::path& directory) {
  std::error_code error;
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : list_directory(directory, error)) {
    files.push_back(entry.path());
  }
  std::ranges::sort(files);
  for (const OtherKind& kind : kOtherKinds) {
    for (const fs::path& file : files) {
      if (file.extension() == kind.suffix) refuse(file, kind.what, kind.hint);
    }
  }
  const auto rank = std::ranges::find_if(
      files, [](const fs::path& file) { return is_rank_directory(file.filename().string()); });
  if (rank != files.end()) {
    refuse(directory, "no checkpoint here, but folders of ranks",
           fmt::format("what unpack wrote of a rank is a checkpoint of its own: {}",
                       shown(rank->string())));
  }
  if (std::ranges::any_of(files, [](const fs::path& p) { return p.filename() == "config.json"; })) {
    refuse(directory, "a config.json, but no *.safetensors beside it",
           "is the download complete? `hf download MODEL --local-dir DIR` goes on with it");
  }
}

void refuse_other_weights(const fs::path& directory, const std::vector<std::string>& names) {
  std::error_code error;
  const auto all = [&](const std::regex& form) {
    return !names.empty() && std::ranges::all_of(names, [&](const std::string& name) {
      return std::regex_match(name, form);
    });
  };
  static const std::regex kAdapter(R"(adapter_model.*\.safetensors)");
  if (all(kAdapter)) {
    refuse(directory, "a LoRA adapter, not a model",
           "merge it into its base model first, in BF16, and quantize the result; or convert the "
           "base model and serve the adapter beside it");
  }
  // vLLM, model_loader/sharded_state_loader.py, DEFAULT_PATTERN.
  static const std::regex kState(R"(model-rank-\d+-part-\d+\.safetensors)");
  if (all(kState)) {
    refuse(directory,
           "a state that vLLM saved (sharded_state), a file a rank: its weights are already "
           "processed for one backend",
           "give the checkpoint that was loaded");
  }
}

void refuse_hub_name(const fs::path& path) {
  std::error_code error;
  if (fs::exists(path, error)) return;
  // A name on a hub is at most 2 x 96 characters, and std::regex needs stack for each of a text's.
  constexpr size_t kLongest = 300;
  static const std::regex kAddress(R"((?:https?://)?(?:www\.)?(?:huggingface\.co|hf\.co)/)"
                                   R"(([\w.-]+/[\w.-]+)(?:/.*)?)");
  static const std::regex kName(R"([A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)");
  const std::string text = path.string();
  std::smatch match;
  std::string name;
  const bool is_short = text.size() < kLongest;
  if (is_short && std::regex_match(text, match, kAddress)) name = match[1];
  // A relative path of two parts reads like a model's name; if its directory is there, it is a
  // path.
  if (is_short && std::regex_match(text, kName) && !is_file_name(path) &&
      !fs::exists(path.parent_path(), error)) {
    name = text;
  }
  if (name.empty() && text.find("://") != std::string::npos) {
    refuse(path, "an address, and this program reads local files only",
           "download it, then give the directory");
  }
  if (name.empty()) return;
  const std::string folder = name.substr(name.find('/') + 1);
  refuse(path,
         "no such file; it reads like a model's name on a hub, and this program reads local "
         "files only",
         fmt::format("`hf download {} --local-dir {}` fetches it; then give {}", name, folder,
                     folder));
}

}  // namespace mxfp4
