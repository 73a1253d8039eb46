#include "formats/checkpoint/safetensors_source.hpp"

#include <fmt/format.h>

#include <map>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "formats/checkpoint/checkpoint_listing.hpp"
#include "formats/checkpoint/mapped_source.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

// Whether the directory of `path` lists it. True also if the system cannot say: without its index, a
// checkpoint would be another one.
bool is_listed(const fs::path& path) {
  std::error_code error;
  return fs::symlink_status(path, error).type() != fs::file_type::not_found;
}

// A directory of this machine. Keeps a map of every file whose front it read.
class LocalFolder final : public CheckpointFolder {
 public:
  explicit LocalFolder(fs::path dir) : dir_(std::move(dir)) {}

  [[nodiscard]] fs::path place(const std::string& name) const override {
    return name.empty() ? dir_ : dir_ / name;
  }
  [[nodiscard]] std::vector<std::string> safetensors() const override {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator at(dir_, error), end; !error && at != end; at.increment(error)) {
      std::string name = at->path().filename().string();
      // As globs do: "._model.safetensors" is a Mac's note on a file.
      const bool weights = name.ends_with(kSafetensorsSuffix) && !name.starts_with('.');
      if (weights) names.push_back(std::move(name));
    }
    if (error) throw Error::input(fmt::format("{}", error.message())).in_file(dir_.string());
    return names;
  }
  [[nodiscard]] bool lists(const std::string& name) const override {
    return is_listed(dir_ / name);
  }
  [[nodiscard]] bool has(const std::string& name) const override {
    std::error_code error;
    if (fs::exists(dir_ / name, error)) return true;
    if (!error) return false;
    // Behind a closed directory, or a link to itself.
    throw Error::input(fmt::format("cannot be opened: {}", error.message()))
        .in_file((dir_ / name).string());
  }
  [[nodiscard]] std::string text(const std::string& name, int64_t most, FileStatus& file) override {
    file = describe_file(dir_ / name);
    return read_text_file(dir_ / name, most);
  }
  [[nodiscard]] std::vector<FileFront> fronts(const std::vector<std::string>& names) override;

  // A source of these tensors, which reads the maps.
  [[nodiscard]] std::unique_ptr<Source> source_of(SourceContents listed);

 private:
  fs::path dir_;
  std::vector<MappedFile> maps_;
};

std::vector<FileFront> LocalFolder::fronts(const std::vector<std::string>& names) {
  std::vector<FileFront> fronts;
  for (const std::string& name : names) {
    const fs::path path = dir_ / name;
    in_file(path.string(), [&] {
      maps_.emplace_back(path);
      fronts.push_back(local_front(path));
      fronts.back().file = maps_.back().file();
    });
  }
  return fronts;
}

std::unique_ptr<Source> LocalFolder::source_of(SourceContents listed) {
  std::map<std::string_view, ConstBytes> bytes_of;
  for (const MappedFile& map : maps_) bytes_of[map.file().path.native()] = map.bytes();
  MappedTensors mapped;
  for (const SourceTensor& tensor : listed.tensors) {
    mapped.data.push_back(bytes_of.at(tensor.file)
                              .subspan(static_cast<size_t>(*tensor.file_offset),
                                       static_cast<size_t>(tensor.spec.bytes())));
  }
  mapped.maps = std::move(maps_);
  return std::make_unique<MappedSource>(std::move(listed), std::move(mapped));
}

}  // namespace

bool holds_safetensors(const fs::path& dir) {
  return is_listed(dir / index_name(false)) || !LocalFolder(dir).safetensors().empty();
}

std::unique_ptr<Source> open_safetensors_file(const fs::path& path) {
  LocalFolder folder(path.parent_path());
  SourceContents listed = list_file(folder, path.filename().string());
  return folder.source_of(std::move(listed));
}

std::unique_ptr<Source> open_checkpoint_directory(const fs::path& dir) {
  LocalFolder folder(dir);
  SourceContents listed = list_checkpoint(folder);
  return folder.source_of(std::move(listed));
}

}  // namespace mxfp4
