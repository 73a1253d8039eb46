#include "formats/checkpoint/safetensors_source.hpp"

#include <fmt/format.h>

#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "formats/checkpoint/checkpoint_listing.hpp"
#include "formats/checkpoint/other_files.hpp"
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

// A directory of this machine.
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
  [[nodiscard]] std::vector<FileFront> fronts(const std::vector<std::string>& names) override {
    std::vector<FileFront> fronts;
    for (const std::string& name : names) {
      const fs::path path = dir_ / name;
      in_file(path.string(), [&] { fronts.push_back(local_front(path)); });
    }
    return fronts;
  }

 private:
  fs::path dir_;
};

}  // namespace

bool holds_safetensors(const fs::path& dir) {
  return is_listed(dir / index_name(false)) || !LocalFolder(dir).safetensors().empty();
}

std::unique_ptr<PositionedSource> open_safetensors(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    refuse_hub_name(path);
    LocalFolder folder(path.parent_path());
    return std::make_unique<PositionedSource>(list_file(folder, path.filename().string()));
  }
  if (!holds_safetensors(path)) {
    throw Error::input("no *.safetensors here").in_file(path.string());
  }
  LocalFolder folder(path);
  return std::make_unique<PositionedSource>(list_checkpoint(folder));
}

}  // namespace mxfp4
