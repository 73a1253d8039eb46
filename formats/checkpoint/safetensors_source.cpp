#include "formats/checkpoint/safetensors_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/blob/manifest.hpp"
#include "formats/checkpoint/mapped_source.hpp"
#include "formats/checkpoint/other_files.hpp"
#include "formats/os/file.hpp"
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

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".safetensors";
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

// The first bytes of a file of `size` bytes, as far as its header goes. They are read, not mapped:
// who opens a checkpoint in a library may have no handler for the signal that a truncated
// map raises.
std::vector<std::byte> read_front(const fs::path& path, int64_t size) {
  const PositionedFile file(path);
  std::vector<std::byte> front(static_cast<size_t>(std::min(size, kTellingBytes)));
  file.read(0, front);
  if (size < kSafetensorsLengthBytes) return front;
  uint64_t length = 0;
  for (size_t i = 0; i < static_cast<size_t>(kSafetensorsLengthBytes); ++i) {
    length |= std::to_integer<uint64_t>(front[i]) << (8 * i);
  }
  const int64_t most = std::min(kMaxSafetensorsHeader, size - kSafetensorsLengthBytes);
  if (length > static_cast<uint64_t>(most)) return front;  // refused by who parses them
  const int64_t end = kSafetensorsLengthBytes + static_cast<int64_t>(length);
  front.resize(static_cast<size_t>(std::max(end, std::ssize(front))));
  file.read(0, front);
  return front;
}

void add_file(MappedTensors& content, Attributes& agreed, const fs::path& path) {
  MappedFile map = in_file(path.string(), [&] { return MappedFile(path); });
  const ConstBytes bytes = map.bytes();
  const auto front = in_file(path.string(), [&] { return read_front(path, map.file().size); });
  refuse_other_file(path, front);
  in_file(path.string(), [&] {
    SafetensorsHeader header = parse_safetensors_header(front, map.file().size);
    check_metadata(header, agreed);
    content.attributes.insert(header.metadata.begin(), header.metadata.end());
    const ConstBytes data = bytes.subspan(static_cast<size_t>(header.data_start));
    for (SafetensorsTensor& tensor : header.tensors) {
      content.tensors.push_back({.name = std::move(tensor.name),
                                 .spec = tensor.spec,
                                 .file = path.string(),
                                 .file_offset = header.data_start + tensor.begin});
      content.data.push_back(data.subspan(static_cast<size_t>(tensor.begin),
                                          static_cast<size_t>(tensor.end - tensor.begin)));
    }
    content.files.push_back(map.file());
    content.maps.push_back(std::move(map));
  });
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
std::vector<std::string> indexed_files(const fs::path& dir, const TensorFiles& weight_map) {
  std::set<std::string> names;
  std::vector<std::string> missing;
  for (const auto& [tensor, file] : weight_map) {
    if (!names.insert(file).second) continue;
    std::error_code error;
    if (fs::exists(dir / file, error)) continue;
    if (error) {  // behind a closed directory, or a link to itself
      throw Error::input(fmt::format("cannot be opened: {}", error.message()))
          .in_file((dir / file).string());
    }
    missing.push_back(file);
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

std::vector<std::string> list_safetensors(const fs::path& dir) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(dir, error), end; !error && at != end; at.increment(error)) {
    std::string name = at->path().filename().string();
    if (name.ends_with(kSuffix)) names.push_back(std::move(name));
  }
  if (error) throw Error::input(fmt::format("{}", error.message())).in_file(dir.string());
  return names;
}

fs::path index_path(const fs::path& dir, bool consolidated) {
  return dir /
         (consolidated ? "consolidated.safetensors.index.json" : "model.safetensors.index.json");
}

// Each tensor of an expert must be in the file that the map names for it. Other tensors need not:
// the engine takes only the names of files from the map, and a tied head, for example, may still be
// listed.
void check_against_index(MappedTensors& content, const fs::path& dir,
                         const TensorFiles& weight_map) {
  std::unordered_map<std::string_view, std::string_view> found;
  found.reserve(content.tensors.size());
  for (const SourceTensor& tensor : content.tensors) found.emplace(tensor.name, tensor.file);
  std::string first;
  size_t others = 0;
  for (const auto& [name, file] : weight_map) {
    const std::string expected = (dir / file).string();
    const auto at = found.find(name);
    if (at != found.end() && at->second == expected) continue;
    std::string fault =
        fmt::format("{}: {}: the index says that it is here, but it is ", expected, shown(name));
    fault += at == found.end() ? std::string("not") : fmt::format("in {}", at->second);
    if (names_expert(name)) throw Error::input(fault);
    if (first.empty()) {
      first = std::move(fault);
    } else {
      ++others;
    }
  }
  if (first.empty()) return;
  content.warnings.push_back(others == 0 ? first : fmt::format("{}; {} more such", first, others));
}

// Whether the directory of `path` lists it, even as a link that leads nowhere: a broken download
// leaves such links, and opening one gives an error that says so. True also if the system cannot
// say: without its index, a checkpoint would be another one.
bool is_listed(const fs::path& path) {
  std::error_code error;
  return fs::symlink_status(path, error).type() != fs::file_type::not_found;
}

// The config.json in `dir`, if there is one.
void add_config(MappedTensors& content, const fs::path& dir) {
  const fs::path config = dir / "config.json";
  if (!is_listed(config)) return;
  in_file(config.string(), [&] {
    content.files.push_back(describe_file(config));
    content.config_json = read_text_file(config, kMaxConfigBytes);
  });
}

}  // namespace

bool holds_safetensors(const fs::path& dir) {
  return is_listed(index_path(dir, false)) || !list_safetensors(dir).empty();
}

std::unique_ptr<Source> open_safetensors_file(const fs::path& path) {
  MappedTensors content;
  content.kind = "safetensors";
  refuse_other_weights(path, {path.filename().string()});
  Attributes agreed;
  add_file(content, agreed, path);
  add_config(content, path.parent_path());
  return std::make_unique<MappedSource>(std::move(content));
}

std::unique_ptr<Source> open_checkpoint_directory(const fs::path& dir) {
  std::vector<std::string> names = list_safetensors(dir);
  refuse_other_weights(dir, names);
  const bool consolidated = std::ranges::any_of(
      names, [](const std::string& name) { return name.starts_with(kConsolidated); });
  if (consolidated) {
    std::erase_if(names, [](const std::string& name) { return !name.starts_with(kConsolidated); });
  }
  MappedTensors content;
  content.kind = "safetensors";
  TensorFiles weight_map;
  const fs::path index = index_path(dir, consolidated);
  if (is_listed(index)) {
    in_file(index.string(), [&] {
      content.files.push_back(describe_file(index));
      const std::string text = read_text_file(index, kMaxWeightMapBytes);
      weight_map = parse_weight_map(text);
      names = indexed_files(dir, weight_map);
    });
  }
  if (weight_map.empty()) in_file(dir.string(), [&] { check_all_parts(names); });
  std::ranges::sort(names, natural_less);
  Attributes agreed;
  for (const std::string& name : names) add_file(content, agreed, dir / name);
  check_unique_across_files(content.tensors);
  check_against_index(content, dir, weight_map);
  add_config(content, dir);
  return std::make_unique<MappedSource>(std::move(content));
}

}  // namespace mxfp4
