// libFuzzer target: any files, links and folders as what lies at OUT. Only what shows by its
// content that this program wrote it may be removed; links are not followed, and what is foreign
// stays as it was.
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <system_error>

#include "formats/os/directory.hpp"
#include "formats/output/own_files.hpp"
#include "tests/fuzz/fuzz_input.hpp"

namespace {

namespace fs = std::filesystem;
using mxfp4::Evidence;
using mxfp4::OwnFiles;
using mxfp4::fuzz::Folder;

constexpr std::array<std::string_view, 4> kFolders = {".", "mxfp4_repack", "rank-00-of-02",
                                                      "other"};
constexpr std::array<std::string_view, 15> kNames = {
    "mxfp4_repack.json",
    "model.safetensors.index.json",
    "README.md",
    "layer-00000.safetensors",
    "layer-00001.safetensors",
    "layer-00000.safetensors.zst",
    "mxfp4_repack.shard-000-of-002.json",
    ".mxfp4_repack.progress",
    ".mxfp4_repack.shard-000-of-002.progress",
    ".layer-00000.safetensors.tmp-AbCd12",
    ".mxfp4_repack.json.tmp-AbCd12",
    "config.json",
    "tokenizer.json",
    ".config.json.tmp-AbCd12",
};
// What a file holds: the bytes as they are, with a manifest's seal, as a journal's lines, or as the
// header of a layer's file.
enum Form : uint8_t { kRaw, kSealed, kJournal, kLayer, kForms };
enum What : uint8_t { kFile, kLink, kDirectory, kPipe, kWhats };

class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : bytes_(bytes) {}
  [[nodiscard]] bool empty() const { return bytes_.empty(); }
  uint8_t number() { return empty() ? 0 : static_cast<uint8_t>(take(1).front()); }
  std::string_view take(size_t count) {
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(taken.size());
    return taken;
  }

 private:
  std::string_view bytes_;
};

std::string journal(std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    lines += fmt::format("{} {}\n", mxfp4::fuzz::checksum_of(line), line);
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return lines;
}

std::string formed(Form form, std::string_view text) {
  if (form == kSealed) return mxfp4::fuzz::sealed(text);
  if (form == kJournal) return journal(text);
  if (form == kRaw) return std::string(text);
  std::string file(sizeof(uint64_t), '\0');
  for (size_t i = 0; i < file.size(); ++i)
    file[i] = static_cast<char>(text.size() >> (8 * i) & 0xFF);
  return file + std::string(text);
}

// Puts one thing to OUT, unless something has its name.
void put(const Folder& out, const fs::path& victim, Bytes& bytes) {
  const fs::path folder = kFolders[bytes.number() % kFolders.size()];
  const fs::path name = kNames[bytes.number() % kNames.size()];
  const auto what = static_cast<What>(bytes.number() % kWhats);
  const auto form = static_cast<Form>(bytes.number() % kForms);
  const size_t size = bytes.number() + size_t{256} * bytes.number();
  const std::string content = formed(form, bytes.take(size));
  std::error_code ignored;
  fs::create_directory(out.path() / folder, ignored);
  const fs::path path = out.path() / folder / name;
  if (fs::symlink_status(path, ignored).type() != fs::file_type::not_found) return;
  if (what == kFile) out.put(folder / name, content);
  if (what == kLink) fs::create_symlink(victim, path, ignored);
  if (what == kDirectory) fs::create_directory(path, ignored);
  if (what == kPipe) (void)mkfifo(path.c_str(), 0600);
}

std::string text_at(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// What lies below OUT: of a file its content.
std::map<fs::path, std::string> all_at(const fs::path& out) {
  std::map<fs::path, std::string> found;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(out)) {
    const bool file = entry.symlink_status().type() == fs::file_type::regular;
    found.emplace(entry.path().lexically_relative(out),
                  file ? text_at(entry.path()) : std::string());
  }
  return found;
}

// Whether a text may be a part of this program's evidence: it has our word, or is compressed.
bool may_be_evidence(const std::string& text) {
  return text.find("mxfp4") != std::string::npos || text.starts_with("\x28\xb5\x2f\xfd");
}

std::set<fs::path> paths_of(const OwnFiles& own) {
  std::set<fs::path> paths;
  for (const mxfp4::OwnFile& file : own.files) {
    if (!paths.insert(file.path).second) std::abort();
  }
  return paths;
}

void check(const fs::path& out, const OwnFiles& own,
           const std::map<fs::path, std::string>& before) {
  const bool evidence =
      std::ranges::any_of(before, [](const auto& entry) { return may_be_evidence(entry.second); });
  const std::set<fs::path> mine = paths_of(own);
  for (const fs::path& path : mine) {
    if (fs::symlink_status(out / path).type() != fs::file_type::regular) std::abort();
    if (std::ranges::find(own.foreign, path) != own.foreign.end()) std::abort();
    const std::string& text = before.at(path);
    if (!evidence && !text.empty() && path.filename() != "model.safetensors.index.json")
      std::abort();
  }
  // Nothing is overlooked at the top.
  for (const fs::directory_entry& entry : fs::directory_iterator(out)) {
    const fs::path name = entry.path().filename();
    const bool known = mine.contains(name) ||
                       std::ranges::find(own.foreign, name) != own.foreign.end() ||
                       std::ranges::find(own.folders, name) != own.folders.end();
    if (!known) std::abort();
  }
}

// Takes away what is ours, and looks at what is left.
void remove(const fs::path& out, const OwnFiles& own,
            const std::map<fs::path, std::string>& before) {
  mxfp4::remove_own_files(mxfp4::Directory(out), own);
  const std::map<fs::path, std::string> after = all_at(out);
  const std::set<fs::path> mine = paths_of(own);
  for (const auto& [path, text] : before) {
    const bool folder = std::ranges::find(own.folders, path) != own.folders.end();
    const auto found = after.find(path);
    if (found == after.end() ? !mine.contains(path) && !folder : mine.contains(path)) std::abort();
    if (found != after.end() && found->second != text) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kMostEntries = 16;
  const Folder beside;
  beside.put("victim", "somebody's");
  const Folder out;
  Bytes bytes(mxfp4::fuzz::text_of(data, size));
  for (size_t i = 0; i < kMostEntries && !bytes.empty(); ++i)
    put(out, beside.path() / "victim", bytes);
  const std::map<fs::path, std::string> before = all_at(out.path());
  const OwnFiles by_name = mxfp4::find_own_files(out.path(), Evidence::kName);
  const OwnFiles by_content = mxfp4::find_own_files(out.path(), Evidence::kContent);
  check(out.path(), by_content, before);
  if (!std::ranges::includes(paths_of(by_name), paths_of(by_content))) std::abort();
  remove(out.path(), by_content, before);
  if (text_at(beside.path() / "victim") != "somebody's") std::abort();
  return 0;
}
