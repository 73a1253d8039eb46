#include "apps/suggest.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <numeric>

#include "apps/text_layout.hpp"
#include "formats/blob/manifest.hpp"

namespace mxfp4 {
namespace {

bool same_letter(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

// Whether `name` begins with `word`: "triton" is near "triton_kernels", however long the rest is.
bool begins_with(std::string_view name, std::string_view word) {
  constexpr size_t kShortest = 4;
  return word.size() >= kShortest && word.size() <= name.size() &&
         std::ranges::equal(word, name.substr(0, word.size()), same_letter);
}

// The Levenshtein distance.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (same_letter(a[i], b[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::vector<std::string> nearest_words(std::string_view word,
                                       const std::vector<std::string>& candidates) {
  constexpr size_t kMost = 3;
  const size_t farthest = std::max<size_t>(2, word.size() / 3);
  std::vector<std::pair<size_t, std::string>> near;
  for (const std::string& candidate : candidates) {
    const size_t distance = begins_with(candidate, word) ? 0 : edit_distance(word, candidate);
    if (distance <= farthest) near.emplace_back(distance, candidate);
  }
  std::ranges::stable_sort(near, {}, &std::pair<size_t, std::string>::first);
  std::vector<std::string> words;
  for (const auto& [distance, candidate] : near) {
    if (words.size() < kMost) words.push_back(candidate);
  }
  return words;
}

std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates) {
  const std::vector<std::string> near = nearest_words(word, candidates);
  return near.empty() ? "" : near.front();
}

std::string nearest_hint(std::string_view word, const std::vector<std::string>& candidates,
                         std::string_view otherwise) {
  const std::string nearest = nearest_word(word, candidates);
  if (!nearest.empty()) return fmt::format("did you mean {}?", nearest);
  if (!otherwise.empty()) return std::string(otherwise);
  return fmt::format("one of {}", fmt::join(candidates, ", "));
}

std::string nearest_names_hint(std::string_view word, const std::vector<std::string>& candidates,
                               std::string_view table) {
  const std::vector<std::string> near = nearest_words(word, candidates);
  if (near.empty()) return fmt::format("list {} shows the names", table);
  return fmt::format("the nearest names: {}; list {} shows all", fmt::join(near, ", "), table);
}

namespace {

struct OtherValue {
  std::string_view word;   // what people call it
  std::string_view value;  // what it is called here
};
constexpr std::array kOtherValues = {
    OtherValue{"env", "variables"},
    OtherValue{"environment", "variables"},
    OtherValue{"vars", "variables"},
    OtherValue{"flags", "knobs"},
    OtherValue{"options", "knobs"},
    OtherValue{"gpus", "machines"},
    OtherValue{"gpu", "machines"},
    OtherValue{"archs", "machines"},
    OtherValue{"architectures", "machines"},
    OtherValue{"devices", "machines"},
    OtherValue{"releases", "revisions"},
    OtherValue{"versions", "revisions"},
    OtherValue{"engines", "revisions"},
    OtherValue{"vllm", "revisions"},
    OtherValue{"libs", "libraries"},
    OtherValue{"packages", "libraries"},
    OtherValue{"kernels", "backends"},
    OtherValue{"models", "styles"},
    OtherValue{"formats", "layouts"},
    OtherValue{"nvidia", "cuda"},
    OtherValue{"amd", "rocm"},
    OtherValue{"hip", "rocm"},
    OtherValue{"intel", "xpu"},
    OtherValue{"gzip", "zstd"},
    OtherValue{"zst", "zstd"},
    OtherValue{"off", "none"},
    OtherValue{"false", "none"},
    OtherValue{"no", "none"},
};

}  // namespace

Error unknown_value(std::string_view flag, std::string_view value,
                    const std::vector<std::string>& known) {
  // "completion $SHELL" gives a path.
  const std::string_view name = value.substr(value.rfind('/') + 1);
  const auto has = [&](std::string_view word) {
    return std::ranges::find(known, word) != known.end();
  };
  const auto* other = std::ranges::find(kOtherValues, name, &OtherValue::word);
  const std::string_view meant = has(name) ? name : other != kOtherValues.end() ? other->value : "";
  if (has(meant)) {
    return Error::usage(fmt::format("{}: unknown value '{}'", flag, value))
        .hint(fmt::format("did you mean {}?", meant));
  }
  return Error::usage(fmt::format("{}: unknown value '{}'", flag, value))
      .hint(nearest_hint(value, known));
}

namespace {

// What a shell replaces, unless quotes or a flag's "=" keep it from that.
std::string unexpanded_hint(const std::string& path) {
  if (path.starts_with("~"))
    return "the shell replaces ~ only at the beginning of a word without quotes";
  if (path.find('$') != std::string::npos) return "the shell replaces $ only outside single quotes";
  if (path.find_first_of("*?[") != std::string::npos)
    return "no file has a name that matches; quotes also keep the shell from looking for one";
  return "";
}

}  // namespace

std::string path_hint(const Error& error) {
  namespace fs = std::filesystem;
  fs::path path = error.file();
  std::error_code code;
  if (error.kind() != ErrorKind::kInput || path.empty() || error.is_unreadable()) return "";
  if (!path.has_filename()) path = path.parent_path();
  // A file within a blob is damaged, or was not copied: its name is not what the user typed.
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (is_layer_file_name(path.filename().string()) && fs::exists(folder / kManifestName, code)) {
    return fmt::format("mxfp4-repack verify {} names all that is missing or damaged",
                       shell_word(folder.string()));
  }
  if (fs::exists(fs::symlink_status(path, code)) || !path.has_filename()) return "";
  if (path == "-") return "- is not standard input here; ./- is a file of that name";
  if (std::string shell = unexpanded_hint(error.file()); !shell.empty()) return shell;
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::vector<std::string> names;
  for (fs::directory_iterator at(parent, code), end; !code && at != end; at.increment(code)) {
    names.push_back(at->path().filename().string());
  }
  std::ranges::sort(names);
  const std::string name = path.filename().string();
  const std::string near = nearest_word(name, names);
  // A slip of a finger leaves at least half of the name, and more than a letter.
  const size_t longest = std::max(name.size(), near.size());
  if (std::min(name.size(), near.size()) < 2 || 2 * edit_distance(name, near) > longest) return "";
  const fs::path meant = path.has_parent_path() ? path.parent_path() / near : fs::path(near);
  return fmt::format("did you mean {}?", shell_word(meant.string()));
}

}  // namespace mxfp4
