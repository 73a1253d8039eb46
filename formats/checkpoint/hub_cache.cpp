#include "formats/checkpoint/hub_cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <system_error>
#include <vector>

#include "formats/os/file.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

// The first line of a small file; empty for any other.
std::string first_line(const fs::path& path) {
  constexpr int64_t kMaxReference = 4096;
  try {
    const std::string text = read_text_file(path, kMaxReference);
    return text.substr(0, text.find_first_of("\r\n"));
  } catch (const Error&) {
    return "";
  }
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

// The folders of the models in a cache's root, such as "models--openai--gpt-oss-20b", by name.
std::vector<fs::path> models_of(const fs::path& root) {
  std::vector<fs::path> models;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(root, ignored)) {
    if (entry.path().filename().string().starts_with("models--")) models.push_back(entry.path());
  }
  std::ranges::sort(models);
  return models;
}

fs::path snapshot_of_model(const fs::path& model) {
  std::error_code ignored;
  const fs::path snapshots = model / "snapshots";
  if (!fs::is_directory(snapshots, ignored)) return model;
  const std::string commit = first_line(model / "refs" / "main");
  if (is_plain_name(commit) && fs::is_directory(snapshots / commit, ignored)) {
    return snapshots / commit;
  }
  std::vector<fs::path> all;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(snapshots, error)) all.push_back(entry.path());
  if (error) {
    throw Error::input(fmt::format("cannot be listed: {}", error.message()))
        .in_file(snapshots.string());
  }
  if (all.size() == 1) return all.front();
  throw Error::input(fmt::format("{} snapshots, and refs/main names none of them", all.size()))
      .in_file(model.string())
      .hint("name one of the directories in snapshots/");
}

}  // namespace

fs::path hub_snapshot(const fs::path& path) {
  std::error_code ignored;
  if (fs::exists(path / "config.json", ignored)) return path;
  const std::vector<fs::path> models = models_of(path);
  if (models.empty()) return snapshot_of_model(path);
  if (models.size() == 1) return snapshot_of_model(models.front());
  std::string names;
  for (const fs::path& model : models) names += " " + model.filename().string();
  throw Error::input(fmt::format("a cache of {} models:{}", models.size(), names))
      .in_file(path.string())
      .hint("give one of these folders");
}

}  // namespace mxfp4
