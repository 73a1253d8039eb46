#include "formats/checkpoint/safetensors_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "formats/blob/manifest.hpp"
#include "formats/checkpoint/other_files.hpp"
#include "formats/os/uninitialized_bytes.hpp"
#include "formats/remote/files_at.hpp"
#include "formats/safetensors/safetensors_header.hpp"
#include "formats/safetensors/weight_map.hpp"
#include "formats/source/natural_order.hpp"
#include "lib/core/error.hpp"
#include "lib/core/expert_name.hpp"
#include "lib/core/text.hpp"
#include "lib/exec/run_on_threads.hpp"
#include "lib/load/loaded_style.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kConsolidated = "consolidated";
constexpr std::string_view kSafetensorsSuffix = ".safetensors";

using Attributes = std::map<std::string, std::string>;

// Metadata that decides how bytes are read must be the same in all files. `agreed`: what the files
// read so far say.
void check_metadata(const SafetensorsHeader& header, Attributes& agreed) {
  if (header.metadata.contains(kPackedMark)) {
    throw Error::input("already packed: a layer file that this program wrote")
        .hint("convert takes a blob by its directory, where its mxfp4_repack.json lies, too");
  }
  std::vector<std::string_view> names;
  for (const SafetensorsTensor& tensor : header.tensors) names.push_back(tensor.name);
  for (const auto& [key, value] : binding_attributes(header.metadata, names)) {
    const auto [at, added] = agreed.emplace(key, value);
    if (added || at->second == value) continue;
    throw Error::input(
        fmt::format("__metadata__: {} is {}, another file of this checkpoint says {}", key,
                    in_quotes(value), in_quotes(at->second)));
  }
}

// A file as far as its header goes, and enough bytes to tell what else it is.
struct FileFront {
  FileStatus file;
  UninitializedBytes bytes;
};

FileFront front_of(const fs::path& path) {
  FileFront front{status_at(path), {}};
  const PositionedFile file = file_at(path);
  const auto take = [&](int64_t bytes) {
    front.bytes.resize(static_cast<size_t>(std::min(file.size(), bytes)));
    file.read(0, front.bytes);
  };
  take(kTellingBytes);
  uint64_t length = 0;
  if (std::ssize(front.bytes) < kSafetensorsLengthBytes) return front;
  std::memcpy(&length, front.bytes.data(), sizeof length);
  const bool is_one = length <= static_cast<uint64_t>(kMaxSafetensorsHeader);
  if (is_one) take(std::max(kTellingBytes, kSafetensorsLengthBytes + static_cast<int64_t>(length)));
  return front;
}

// Far files are asked all at once.
void add_files(SourceContents& content, const fs::path& folder,
               const std::vector<std::string>& names) {
  constexpr int kFarThreads = 32;
  struct None {};
  std::vector<FileFront> fronts(names.size());
  run_on_threads<None>(is_address(folder) ? kFarThreads : 1, names.size(), [&](size_t i, None&) {
    const fs::path path = folder / names[i];
    in_file(path.string(), [&] { fronts[i] = front_of(path); });
  });
  Attributes agreed;
  for (const FileFront& front : fronts) {
    const std::string path = front.file.path.string();
    refuse_pointer(path, front.bytes);
    in_file(path, [&] {
      SafetensorsHeader header = parse_safetensors_header(front.bytes, front.file.size);
      check_metadata(header, agreed);
      content.attributes.insert(header.metadata.begin(), header.metadata.end());
      for (SafetensorsTensor& tensor : header.tensors) {
        content.tensors.push_back({.name = std::move(tensor.name),
                                   .spec = tensor.spec,
                                   .file = path,
                                   .file_offset = header.data_start + tensor.begin});
      }
      content.files.push_back(front.file);
    });
  }
}

void check_unique_across_files(const std::vector<SourceTensor>& tensors) {
  std::unordered_map<std::string_view, const SourceTensor*> first;
  first.reserve(tensors.size());
  for (const SourceTensor& tensor : tensors) {
    const auto [at, added] = first.emplace(tensor.name, &tensor);
    if (added) continue;
    throw Error::input(fmt::format("{}: also in {}", shown(tensor.name), at->second->file))
        .in_file(tensor.file);
  }
}

// Throws: a download that stopped. `first`: the first file that is not there.
[[noreturn]] void refuse_incomplete(int64_t missing, int64_t all, const std::string& first) {
  throw Error::input(fmt::format("{} of {} files {} not there{} {}", missing, all,
                                 missing == 1 ? "is" : "are", missing == 1 ? ":" : ", first of all",
                                 in_quotes(first)))
      .hint(
          "is the download complete? `hf download MODEL --local-dir DIR` fetches what is missing");
}

// Whether the file is there: not as a link that leads nowhere, which a broken download leaves.
bool is_there(const fs::path& path) {
  if (is_address(path)) {
    bool all = true;  // else the first answer says which file is missing
    (void)names_at(path.parent_path(), &all);
    return !all || is_listed_at(path);
  }
  std::error_code error;
  if (fs::exists(path, error)) return true;
  if (!error) return false;
  // Behind a closed directory, or a link to itself.
  throw Error::input(fmt::format("cannot be opened: {}", error.message())).in_file(path.string());
}

// The names of its *.safetensors, in no order.
std::vector<std::string> safetensors_in(const fs::path& folder) {
  std::vector<std::string> names = in_file(folder.string(), [&] { return names_at(folder); });
  // As globs do: "._model.safetensors" is a Mac's note on a file.
  std::erase_if(names, [](const std::string& name) {
    return !name.ends_with(kSafetensorsSuffix) || name.starts_with('.');
  });
  return names;
}

// The files of a weight map, each once. Throws if one is not there: a download that stopped.
std::vector<std::string> indexed_files(const fs::path& folder, const TensorFiles& weight_map) {
  std::set<std::string> names;
  std::vector<std::string> missing;
  for (const auto& [tensor, file] : weight_map) {
    if (names.insert(file).second && !is_there(folder / file)) missing.push_back(file);
  }
  if (missing.empty()) return {names.begin(), names.end()};
  in_context("weight_map", [&] {
    refuse_incomplete(std::ssize(missing), std::ssize(names),
                      *std::ranges::min_element(missing, natural_less));
  });
  return {};
}

// Throws if names such as "model-00002-of-00003.safetensors" say that other files belong to these:
// without an index nothing else tells of a download that stopped.
void check_all_parts(const std::vector<std::string>& names) {
  static const std::regex kPart(R"((.*)-(\d{1,9})-of-(\d{1,9})\.safetensors)");
  struct Parts {
    std::set<int64_t> there;
    int64_t width;
  };
  std::map<std::pair<std::string, int64_t>, Parts> sets;
  for (const std::string& name : names) {
    std::smatch match;
    if (!std::regex_match(name, match, kPart)) continue;
    Parts& parts = sets[{match[1], std::stoll(match[3])}];
    parts.there.insert(std::stoll(match[2]));
    parts.width = match[2].length();
  }
  for (const auto& [of, parts] : sets) {
    const auto& [stem, count] = of;
    // Hub numbers begin at 1; some exporters' begin at 0.
    const int64_t first = parts.there.contains(0) ? 0 : 1;
    const int64_t missing = count - std::ssize(parts.there);
    if (missing <= 0) continue;
    int64_t number = first;
    while (parts.there.contains(number)) ++number;
    refuse_incomplete(missing, count,
                      fmt::format("{}-{:0{}}-of-{:0{}}.safetensors", stem, number, parts.width,
                                  count, parts.width));
  }
}

// Each tensor of an expert that the map names must be there. Others need not: the engine takes only
// the names of files from the map, and a tied head, for example, may still be listed.
void require_indexed_experts(const SourceContents& content, const fs::path& folder,
                             const TensorFiles& weight_map) {
  std::unordered_set<std::string_view> found;
  for (const SourceTensor& tensor : content.tensors) found.insert(tensor.name);
  for (const auto& [name, file] : weight_map) {
    if (!names_expert(name) || found.contains(name)) continue;
    throw Error::input(
        fmt::format("{}: the index says that it is here, but it is not", shown(name)))
        .in_file((folder / file).string());
  }
}

// The folder's config.json, if there is one.
void add_config(SourceContents& content, const fs::path& folder) {
  const fs::path path = folder / "config.json";
  if (!is_listed_at(path)) return;
  in_file(path.string(), [&] {
    content.files.push_back(status_at(path));
    content.config_json = text_at(path, kMaxConfigBytes);
  });
}

// `consolidated`: beside consolidated*.safetensors.
std::string index_name(bool consolidated) {
  return consolidated ? "consolidated.safetensors.index.json" : "model.safetensors.index.json";
}

SourceContents list_file(const fs::path& path) {
  SourceContents content{.kind = "safetensors"};
  const std::string name = path.filename().string();
  refuse_other_weights(path, {name});
  add_files(content, path.parent_path(), {name});
  add_config(content, path.parent_path());
  return content;
}

SourceContents list_checkpoint(const fs::path& folder) {
  std::vector<std::string> names = safetensors_in(folder);
  refuse_other_weights(folder, names);
  const bool consolidated = std::ranges::any_of(
      names, [](const std::string& name) { return name.starts_with(kConsolidated); });
  if (consolidated) {
    std::erase_if(names, [](const std::string& name) { return !name.starts_with(kConsolidated); });
  }
  SourceContents content{.kind = "safetensors"};
  TensorFiles weight_map;
  const fs::path index = folder / index_name(consolidated);
  if (is_listed_at(index)) {
    in_file(index.string(), [&] {
      content.files.push_back(status_at(index));
      weight_map = parse_weight_map(text_at(index, kMaxWeightMapBytes));
      names = indexed_files(folder, weight_map);
    });
  }
  if (weight_map.empty()) in_file(folder.string(), [&] { check_all_parts(names); });
  std::ranges::sort(names, natural_less);
  add_files(content, folder, names);
  check_unique_across_files(content.tensors);
  require_indexed_experts(content, folder, weight_map);
  add_config(content, folder);
  return content;
}

}  // namespace

bool holds_safetensors(const fs::path& folder) {
  return is_listed_at(folder / index_name(false)) || !safetensors_in(folder).empty();
}

std::unique_ptr<PositionedSource> open_safetensors(const fs::path& path) {
  if (!is_folder_at(path)) {
    refuse_hub_name(path);
    return std::make_unique<PositionedSource>(list_file(path));
  }
  if (!holds_safetensors(path)) {
    throw Error::input("no *.safetensors here").in_file(path.string());
  }
  return std::make_unique<PositionedSource>(list_checkpoint(path));
}

}  // namespace mxfp4
