#include "formats/checkpoint/other_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <regex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "formats/blob/blob_reader.hpp"
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
constexpr std::string_view kArrays = "an archive of NumPy's arrays; this program does not read it";
constexpr std::string_view kZip = "a zip archive; this program does not read it";
constexpr std::string_view kOpenVino = "a model of OpenVINO; this program does not read it";

constexpr std::string_view kAdapterOnly = "a LoRA adapter, not a model";
constexpr std::string_view kMergeAdapter =
    "merge it into its base model first, in BF16, and quantize the result; or convert the base "
    "model and serve the adapter beside it";

// How other programs' files end, where the bytes do not say what they are.
struct OtherSuffix {
  std::string_view ends;
  std::string_view what;
};
constexpr std::array kOtherSuffixes = {
    OtherSuffix{".gguf", "a GGUF file, as llama.cpp reads; this program does not repack it"},
    OtherSuffix{"openvino_model.bin", kOpenVino},
    OtherSuffix{"openvino_model.xml", kOpenVino},
    OtherSuffix{".onnx", "an ONNX model; this program does not read it"},
    OtherSuffix{".msgpack", "weights of Flax; this program does not read them"},
    OtherSuffix{".npz", kArrays},
    OtherSuffix{".zip", kZip},
    OtherSuffix{".distcp", "PyTorch's distributed checkpoint; this program does not read it"},
    OtherSuffix{".engine",
                "an engine of TensorRT, built for one GPU; this program does not read it"},
    OtherSuffix{".pth", kPickled},
    OtherSuffix{".pt", kPickled},
    OtherSuffix{".ckpt", kPickled},
    OtherSuffix{"model.bin", kPickled},
};

std::string_view as_text(ConstBytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// What a file is that begins so; empty for safetensors, nothing if its bytes do not say it.
std::optional<std::string_view> what_begins(ConstBytes bytes) {
  constexpr std::string_view kZipMark{"PK\x03\x04", 4};
  const std::string_view text = as_text(bytes).substr(0, static_cast<size_t>(kTellingBytes));
  if (text.starts_with("GGUF")) return kOtherSuffixes.front().what;
  if (text.starts_with("GPT-OSS v1.0")) {
    return "gpt-oss for Apple's Metal; this program does not read it";
  }
  // The length of a safetensors header may begin as a pickle or a zip archive does.
  if (begins_as_safetensors(bytes)) return "";
  // A pickle says its protocol, 2 to 5.
  if (text.size() > 2 && text[0] == '\x80' && text[1] >= 2 && text[1] <= 5) return kPickled;
  if (!text.starts_with(kZipMark)) return std::nullopt;
  if (text.find("data.pkl") != std::string_view::npos) return kPickled;
  if (text.find(".npy") != std::string_view::npos) return kArrays;
  return kZip;
}

std::string_view what_ends(const fs::path& path) {
  const std::string name = path.filename().string();
  for (const OtherSuffix& suffix : kOtherSuffixes) {
    if (name.ends_with(suffix.ends)) return suffix.what;
  }
  return name.starts_with("pytorch_model") && name.ends_with(".bin") ? kPickled : "";
}

// What another program's file is: its name says it, unless its bytes say otherwise.
std::string_view what_is(const fs::path& path, ConstBytes bytes) {
  const std::string_view named = what_ends(path);
  const std::optional<std::string_view> found = what_begins(bytes);
  // PyTorch's and NumPy's are zip archives, too.
  return !found || (found == kZip && !named.empty()) ? named : *found;
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

// The first directory below, two levels down at most, that holds safetensors; empty if none does.
fs::path weights_below(const fs::path& directory, int levels = 2) {
  std::error_code error;
  std::vector<fs::path> inside;
  for (const fs::directory_entry& entry : list_directory(directory, error)) {
    std::error_code ignored;
    const bool hidden = entry.path().filename().string().starts_with(".");
    if (!hidden && entry.is_directory(ignored)) inside.push_back(entry.path());
  }
  std::ranges::sort(inside);
  for (const fs::path& path : inside) {
    std::error_code ignored;
    for (const fs::directory_entry& entry : list_directory(path, ignored)) {
      if (entry.path().extension() == ".safetensors") return path;
    }
    fs::path below = levels > 1 ? weights_below(path, levels - 1) : fs::path();
    if (!below.empty()) return below;
  }
  return {};
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
  if (const std::string_view what = what_is(path, first_bytes); !what.empty()) {
    refuse(path, what, kSafetensorsHint);
  }
  in_file(path.string(), [&] { refuse_other_text(as_text(first_bytes)); });
}

void refuse_no_safetensors(const fs::path& path, ConstBytes first_bytes) {
  const std::string_view text = as_text(first_bytes);
  constexpr std::string_view kAgain = "is it a failed download? fetch the file again";
  if (text.empty()) return;
  if (is_web_page(text)) refuse(path, "a web page, not safetensors", kAgain);
  if (text.find_first_not_of('\0') == std::string_view::npos) {
    refuse(path, "zeros where the header should be", "is the download complete?");
  }
  const bool printed = std::ranges::all_of(
      text, [](char c) { return (c >= ' ' && c <= '~') || c == '\n' || c == '\r' || c == '\t'; });
  if (printed) {
    constexpr size_t kShown = 40;
    refuse(path, fmt::format("a text, not safetensors: {}", in_quotes(text.substr(0, kShown))),
           kAgain);
  }
}

void refuse_other_text(std::string_view text) {
  if (const std::string_view coding = other_coding(text); coding.starts_with("compressed")) {
    throw Error::input(std::string(coding)).hint("decompress it first");
  }
  if (is_lfs_pointer(text)) throw Error::input(kLfsPointer).hint(kFetchLfs);
  const std::string_view what = what_begins(std::as_bytes(std::span(text))).value_or("");
  if (!what.empty()) {
    throw Error::input(std::string(what)).hint(std::string(kSafetensorsHint));
  }
}

void refuse_other_directory(const fs::path& directory) {
  std::error_code error;
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : list_directory(directory, error)) {
    files.push_back(entry.path());
  }
  std::ranges::sort(files);
  for (const fs::path& file : files) {
    if (file.filename() == "adapter_config.json") refuse(directory, kAdapterOnly, kMergeAdapter);
  }
  for (const fs::path& file : files) {
    std::error_code ignored;
    const bool named = !what_ends(file).empty() || file.extension() == ".bin";
    if (!named || !fs::is_regular_file(file, ignored)) continue;
    const std::string_view what = what_is(file, telling_bytes(file));
    if (!what.empty()) refuse(file, what, kSafetensorsHint);
  }
  const auto rank = std::ranges::find_if(
      files, [](const fs::path& file) { return is_rank_directory(file.filename().string()); });
  if (rank != files.end()) {
    refuse(directory, "no checkpoint here, but folders of ranks",
           fmt::format("what unpack wrote of a rank is a checkpoint of its own: {}",
                       shown(rank->string())));
  }
  const fs::path below = weights_below(directory);
  if (!below.empty()) {
    refuse(directory, "no *.safetensors here, but in a folder below",
           fmt::format("give {}", shown(below.string())));
  }
  if (std::ranges::any_of(files, [](const fs::path& p) { return p.filename() == "config.json"; })) {
    refuse(directory, "a config.json, but no *.safetensors beside it",
           "is the download complete? `hf download MODEL --local-dir DIR` goes on with it");
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
