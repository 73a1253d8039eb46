#include "formats/output/own_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <regex>
#include <span>
#include <sstream>
#include <string_view>
#include <system_error>

#include "formats/blob/blob_files.hpp"
#include "formats/blob/blob_reader.hpp"
#include "formats/blob/blob_writer.hpp"
#include "formats/blob/journal.hpp"
#include "formats/blob/layer_mark.hpp"
#include "formats/blob/shard_manifest.hpp"
#include "formats/checksum/checksum.hpp"
#include "formats/os/directory.hpp"
#include "formats/os/mapped_file.hpp"
#include "formats/output/records.hpp"
#include "formats/output/states.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

// Beside the shards of `unpack --as-published`.
constexpr const char* kConfigFile = "config.json";
// The first bytes of every manifest, of blobs and of shards.
constexpr std::string_view kManifestFront = "{\n  \"format\": \"mxfp4-repack";

bool is_our_folder(const std::string& name) {
  return name == kBlobFolder || is_rank_directory(name);
}

bool is_manifest_name(const std::string& name) {
  return name == kManifestName || is_shard_manifest(name);
}

// The files that the records in a directory name.
class Records {
 public:
  explicit Records(const fs::path& directory) {
    read_published(directory);
    read_blobs(directory);
    read_blobs(directory / kBlobFolder);
  }

  // Whether there is any record. If so, there may be unfinished files.
  [[nodiscard]] bool any() const { return any_; }
  // Names of the files of the model directory, which can be any names.
  [[nodiscard]] const std::set<std::string>& rest() const { return rest_; }
  // Names of the shards that `unpack --as-published` wrote.
  [[nodiscard]] const std::set<std::string>& published() const { return published_; }
  // Whether the file has the size and checksum that a record gives for its name. A layer file need
  // only begin with the header that its record implies, so that damage behind it does not make it
  // foreign.
  [[nodiscard]] bool describe(const fs::path& path, const std::function<void()>& between) const {
    const auto [first, last] = files_.equal_range(path.lexically_normal());
    if (first == last) return false;
    if (std::any_of(first, last, [&](const auto& entry) {
          return !entry.second.header.empty() && begins_with_header(path, entry.second.header);
        })) {
      return true;
    }
    try {
      const MappedFile map(path);
      const bool size = std::any_of(
          first, last, [&](const auto& entry) { return entry.second.size == map.file().size; });
      if (!size) return false;
      const std::string sum = checksum_of_mapped(map.bytes(), between);
      return std::any_of(first, last, [&](const auto& entry) {
        return entry.second.size == map.file().size && entry.second.xxh3_128 == sum;
      });
    } catch (const Error&) {
      return false;  // not readable
    }
  }
  // Whether a record describes a file in this folder.
  [[nodiscard]] bool describe_file_in(const fs::path& folder,
                                      const std::function<void()>& between) const {
    const fs::path normal = (folder / "file").lexically_normal().parent_path();
    return std::ranges::any_of(files_, [&](const auto& entry) {
      return entry.first.parent_path() == normal && describe(entry.first, between);
    });
  }

 private:
  struct Recorded {
    int64_t size = 0;
    std::string xxh3_128;
    std::string header;  // of a layer without a mark; else empty
  };

  // A published shard records the config.json beside it.
  void read_published(const fs::path& directory) {
    std::error_code ignored;
    for (const fs::directory_entry& entry : list_directory(directory, ignored)) {
      if (entry.path().extension() != ".safetensors" || entry.is_symlink(ignored)) continue;
      const std::string config = published_config(entry.path());
      if (config.empty()) continue;
      published_.insert(entry.path().filename().string());
      if (config == kNoConfig) continue;
      rest_.insert(kConfigFile);
      Recorded recorded;
      std::istringstream(config) >> recorded.size >> recorded.xxh3_128;
      files_.emplace((directory / kConfigFile).lexically_normal(), std::move(recorded));
    }
    rest_.insert(published_.begin(), published_.end());
  }

  void read_blobs(const fs::path& blob) {
    std::error_code ignored;
    for (const fs::directory_entry& entry : list_directory(blob, ignored)) {
      const std::string name = entry.path().filename().string();
      if (entry.is_symlink(ignored)) continue;
      if (is_rank_directory(name) && entry.is_directory(ignored)) read_blobs_of_rank(entry.path());
      try {
        read_record(blob, entry.path(), name);
      } catch (const Error&) {
        // A damaged record proves nothing.
      }
    }
  }

  void read_blobs_of_rank(const fs::path& rank) {
    try {
      const fs::path path = rank / kManifestName;
      std::error_code ignored;
      if (fs::exists(path, ignored)) add(rank.parent_path(), read_manifest(rank));
    } catch (const Error&) {
    }
  }

  void read_record(const fs::path& blob, const fs::path& path, const std::string& name) {
    if (name == kManifestName) {
      const Manifest manifest = read_manifest(blob);
      // Layers lie beside the manifest, also if this is the directory of one rank of several.
      add_layers(blob, manifest);
      add_rest(blob, manifest.rest);
      any_ = true;
    } else if (is_shard_manifest(name)) {
      for (const Manifest& rank : read_shard_manifest(path).ranks) add(blob, rank);
    } else if (name.starts_with(kJournalPrefix)) {
      const JournalContent journal = read_journal(path);
      if (journal.bytes == 0) return;
      any_ = true;
      for (const auto& [file, finished] : journal.files) {
        files_.emplace((blob / file).lexically_normal(),
                       Recorded{finished.size, finished.xxh3_128, {}});
      }
      rest_.insert(journal.rest.begin(), journal.rest.end());
    }
  }

  void add(const fs::path& blob, const Manifest& manifest) {
    add_layers(blob / rank_directory(manifest.rank), manifest);
    add_rest(blob, manifest.rest);
    any_ = true;
  }
  void add_layers(const fs::path& home, const Manifest& manifest) {
    for (const ManifestLayer& layer : manifest.layers) {
      files_.emplace((home / layer.file).lexically_normal(),
                     Recorded{layer.size, layer.xxh3_128,
                              manifest.layout == kLoadedLayoutId ? layer_header(manifest, layer)
                                                                 : std::string()});
    }
  }
  void add_rest(const fs::path& blob, const std::vector<ManifestFile>& rest) {
    // Without "..", which leads lexically_normal() to append to "out/": GCC 12's operator/= crashes
    // if it finds no memory for that.
    const fs::path model = blob.parent_path();
    for (const ManifestFile& file : rest) {
      files_.emplace((model / file.name).lexically_normal(),
                     Recorded{file.size, file.xxh3_128, {}});
      rest_.insert(file.name);
    }
  }

  std::multimap<fs::path, Recorded> files_;
  std::set<std::string> rest_;
  std::set<std::string> published_;
  bool any_ = false;
};

bool is_our_name(const std::string& name, const std::set<std::string>& rest) {
  static const std::regex kNames(R"(layer-[0-9]{5,}\.safetensors(\.zst)?)"
                                 R"(|mxfp4_repack(\.shard-[0-9]{3,}-of-[0-9]{3,})?\.json)"
                                 R"(|model\.safetensors\.index\.json|README\.md)"
                                 R"(|\.mxfp4_repack\.((shard-[0-9]{3,}-of-[0-9]{3,}\.)?progress))");
  return rest.contains(name) || std::regex_match(name, kNames);
}

bool begins_with(const fs::path& path, std::string_view front) {
  std::string text(front.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  return file.gcount() == static_cast<std::streamsize>(front.size()) && text == front;
}

// Whether a layer file in the folder has our mark.
bool holds_our_layer(const fs::path& folder) {
  std::error_code ignored;
  return std::ranges::any_of(list_directory(folder, ignored), [&](const auto& entry) {
    return is_layer_file_name(entry.path().filename().string()) && !entry.is_symlink(ignored) &&
           is_our_layer(entry.path());
  });
}

struct OwnFileRules {
  const fs::path& root;
  const Records& records;
  Evidence evidence;
  const std::function<void()>& between;

  [[nodiscard]] bool by_name(const std::string& name, const std::set<std::string>& rest) const {
    if (!is_temporary(name)) return is_our_name(name, rest);
    return is_our_name(name.substr(1, name.size() - 1 - kTemporaryEnd), rest);
  }

  [[nodiscard]] bool by_content(const fs::path& path, const std::string& name, int64_t size) const {
    // A half-written file is ours only if a record is there, or if it is itself the beginning of a
    // journal.
    if (is_temporary(name)) {
      return records.any() || size == 0 || read_journal(path).bytes > 0 ||
             (name.substr(1).starts_with(kJournalPrefix) && is_cut_journal(path));
    }
    // A crash may leave an empty file; removing it loses nothing.
    if (size == 0 && is_our_name(name, {})) return true;
    if (name.starts_with(kJournalPrefix)) return read_journal(path).bytes > 0;
    // A damaged manifest or index is ours if layers of ours lie beside it.
    if (is_manifest_name(name)) {
      return begins_with(path, kManifestFront) || holds_our_layer(path.parent_path());
    }
    if (name == kIndexName &&
        (is_blob_index(path, records.published()) || is_damaged_index_of_ours(path))) {
      return true;
    }
    if (records.published().contains(name)) return true;
    if (is_layer_file_name(name) && is_our_layer(path)) return true;
    return records.describe(path, between);
  }

  // An index that can be parsed is not damaged: if it names other files than layers, it is not
  // ours.
  [[nodiscard]] bool is_damaged_index_of_ours(const fs::path& path) const {
    const fs::path folder = path.parent_path();
    return is_damaged_index(path) &&
           (holds_our_layer(folder) || records.describe_file_in(folder, between));
  }
};

void look_through(const OwnFileRules& rules, const fs::path& folder, OwnFiles& found) {
  std::error_code error;
  const std::vector<fs::directory_entry> entries = list_directory(folder, error);
  if (error) {
    throw Error::output(fmt::format("cannot be listed: {}", error.message()))
        .in_file(folder.string());
  }
  // The names of the model directory's files count only in that directory, not in its folders.
  static const std::set<std::string> kNone;
  const bool top = folder == rules.root;
  const std::set<std::string>& rest = top ? rules.records.rest() : kNone;
  for (const fs::directory_entry& entry : entries) {
    const std::string name = entry.path().filename().string();
    const fs::path relative = top ? fs::path(name) : entry.path().lexically_relative(rules.root);
    std::error_code ignored;
    // Files that another process removed after the listing do not count.
    const bool special = entry.is_symlink(ignored) || entry.is_other(ignored);
    const bool is_folder = !special && entry.is_directory(ignored);
    if (is_folder && is_our_folder(name)) {
      look_through(rules, entry.path(), found);
      found.folders.push_back(relative);
      continue;
    }
    const auto state = state_of(entry.path());
    if (!state) continue;
    const bool by_content =
        rules.evidence == Evidence::kContent || name.starts_with(kJournalPrefix);
    const bool ours = !special && !is_folder && rules.by_name(name, rest) &&
                      (!by_content || rules.by_content(entry.path(), name, state->size));
    if (ours) {
      found.files.push_back({relative, *state});
    } else {
      found.foreign.push_back(relative);
    }
  }
}

// Files with higher numbers are removed first. Records are removed last, because only they identify
// files without a mark.
int removal_order(const OwnFile& file) {
  const std::string name = file.path.filename().string();
  return is_manifest_name(name) || name.starts_with(kJournalPrefix) ? 0 : 1;
}

// A power cut may keep what was removed in one folder, and lose it in another: files would come
// back without the record that shows whose they are.
void sync_folders(const Directory& directory, std::span<const OwnFile> removed) {
  std::set<fs::path> folders;
  for (const OwnFile& file : removed) folders.insert(file.path.parent_path());
  for (const fs::path& folder : folders) {
    const std::optional<Directory> opened = directory.find(folder.empty() ? "." : folder);
    if (opened) opened->sync();
  }
}

}  // namespace

OwnFiles find_own_files(const fs::path& directory, Evidence evidence,
                        const std::function<void()>& between) {
  OwnFiles found;
  const Records records(directory);
  look_through({directory, records, evidence, between}, directory, found);
  return found;
}

OwnFiles require_own_files(const fs::path& directory, Evidence evidence,
                           const std::function<void()>& between) {
  OwnFiles own = find_own_files(directory, evidence, between);
  if (own.foreign.empty()) return own;
  throw refusal(kKeepsForeign, {directory.string(), {}, std::ranges::min(own.foreign).string()});
}

void remove_own_files(const Directory& directory, const OwnFiles& own) {
  std::vector<OwnFile> files = own.files;
  std::ranges::stable_sort(files, std::greater{}, removal_order);
  const auto records =
      std::ranges::find_if(files, [](const OwnFile& file) { return removal_order(file) == 0; });
  for (auto file = files.begin(); file != files.end(); ++file) {
    if (file == records) sync_folders(directory, {files.begin(), records});
    const std::optional<FileState> state = directory.state(file->path);
    if (state == file->state) directory.remove(file->path);
    // Before the records go, which show that the file is ours.
    if (!state && errno != ENOENT) {
      throw Error::output(fmt::format("cannot be examined: {}", std::strerror(errno)))
          .in_file((directory.path() / file->path).string());
    }
  }
  // A folder is not empty if somebody put a file there meanwhile.
  for (const fs::path& folder : own.folders) (void)directory.remove_folder(folder);
}

}  // namespace mxfp4
