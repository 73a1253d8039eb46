#include "formats/checkpoint/checkpoint_listing.hpp"

#include <fmt/format.h>

#include <algorithm>
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
#include "formats/os/positioned_file.hpp"
#include "formats/safetensors/safetensors_header.hpp"
#include "formats/safetensors/weight_map.hpp"
#include "formats/source/natural_order.hpp"
#include "lib/core/error.hpp"
#include "lib/core/expert_name.hpp"
#include "lib/core/text.hpp"
#include "lib/load/loaded_style.hpp"

namespace mxfp4 {
namespace {

constexpr std::string_view kConsolidated = "consolidated";

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

void add_files(SourceContents& content, CheckpointFolder& folder,
               const std::vector<std::string>& names) {
  Attributes agreed;
  for (const FileFront& front : folder.fronts(names)) {
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

// The files of a weight map, each once. Throws if one is not there: a download that stopped.
std::vector<std::string> indexed_files(const CheckpointFolder& folder,
                                       const TensorFiles& weight_map) {
  std::set<std::string> names;
  std::vector<std::string> missing;
  for (const auto& [tensor, file] : weight_map) {
    if (names.insert(file).second && !folder.has(file)) missing.push_back(file);
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
void require_indexed_experts(const SourceContents& content, const CheckpointFolder& folder,
                             const TensorFiles& weight_map) {
  std::unordered_set<std::string_view> found;
  for (const SourceTensor& tensor : content.tensors) found.insert(tensor.name);
  for (const auto& [name, file] : weight_map) {
    if (!names_expert(name) || found.contains(name)) continue;
    throw Error::input(
        fmt::format("{}: the index says that it is here, but it is not", shown(name)))
        .in_file(folder.place(file).string());
  }
}

// The folder's config.json, if there is one.
void add_config(SourceContents& content, CheckpointFolder& folder) {
  const std::string name = "config.json";
  if (!folder.lists(name)) return;
  in_file(folder.place(name).string(), [&] {
    content.files.emplace_back();
    content.config_json = folder.text(name, kMaxConfigBytes, content.files.back());
  });
}

}  // namespace

std::string index_name(bool consolidated) {
  return consolidated ? "consolidated.safetensors.index.json" : "model.safetensors.index.json";
}

int64_t front_bytes(ConstBytes begin, int64_t size) {
  const int64_t telling = std::min(size, kTellingBytes);
  if (std::ssize(begin) < kSafetensorsLengthBytes) return telling;
  uint64_t length = 0;
  for (size_t i = 0; i < static_cast<size_t>(kSafetensorsLengthBytes); ++i) {
    length |= std::to_integer<uint64_t>(begin[i]) << (8 * i);
  }
  const int64_t most = std::min(kMaxSafetensorsHeader, size - kSafetensorsLengthBytes);
  if (length > static_cast<uint64_t>(most)) return telling;  // refused by who parses them
  return std::max(telling, kSafetensorsLengthBytes + static_cast<int64_t>(length));
}

FileFront local_front(const std::filesystem::path& path) {
  FileFront front{describe_file(path), {}};
  const PositionedFile file(path);
  for (const bool whole : {false, true}) {
    const ConstBytes known = whole ? ConstBytes(front.bytes) : ConstBytes();
    front.bytes.resize(static_cast<size_t>(front_bytes(known, front.file.size)));
    file.read(0, front.bytes);
  }
  return front;
}

SourceContents list_file(CheckpointFolder& folder, const std::string& name) {
  SourceContents content{.kind = "safetensors"};
  refuse_other_weights(folder.place(name), {name});
  add_files(content, folder, {name});
  add_config(content, folder);
  return content;
}

SourceContents list_checkpoint(CheckpointFolder& folder) {
  std::vector<std::string> names = folder.safetensors();
  refuse_other_weights(folder.place(""), names);
  const bool consolidated = std::ranges::any_of(
      names, [](const std::string& name) { return name.starts_with(kConsolidated); });
  if (consolidated) {
    std::erase_if(names, [](const std::string& name) { return !name.starts_with(kConsolidated); });
  }
  SourceContents content{.kind = "safetensors"};
  TensorFiles weight_map;
  const std::string index = index_name(consolidated);
  if (folder.lists(index)) {
    in_file(folder.place(index).string(), [&] {
      content.files.emplace_back();
      weight_map = parse_weight_map(folder.text(index, kMaxWeightMapBytes, content.files.back()));
      names = indexed_files(folder, weight_map);
    });
  }
  if (weight_map.empty()) in_file(folder.place("").string(), [&] { check_all_parts(names); });
  std::ranges::sort(names, natural_less);
  add_files(content, folder, names);
  check_unique_across_files(content.tensors);
  require_indexed_experts(content, folder, weight_map);
  add_config(content, folder);
  return content;
}

}  // namespace mxfp4
