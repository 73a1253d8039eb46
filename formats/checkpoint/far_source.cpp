#include "formats/checkpoint/far_source.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "formats/checkpoint/checkpoint_listing.hpp"
#include "formats/checksum/checksum.hpp"
#include "formats/os/positioned_file.hpp"
#include "formats/remote/far_folder.hpp"
#include "formats/remote/read_ahead.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

// What is asked of a file first; a header of some hundred tensors fits.
constexpr int64_t kFrontBytes = int64_t{16} << 10;

// What lies beside the weights, where a server does not list its files.
constexpr std::array kUsualNames = {"chat_template.jinja",
                                    "generation_config.json",
                                    "merges.txt",
                                    "special_tokens_map.json",
                                    "tokenizer.json",
                                    "tokenizer.model",
                                    "vocab.json",
                                    "tokenizer_config.json",
                                    "processor_config.json",
                                    "added_tokens.json",
                                    "tiktoken.model",
                                    "preprocessor_config.json"};

using FarFiles = std::map<std::string, std::shared_ptr<FarFile>>;  // by name for messages

// What --resume compares: a file that changes has another validator.
FileStatus status_of(const FarFile& file) {
  uint64_t stamp = 0;
  for (const char c : checksum_of(file.validator).substr(0, 15)) {
    stamp = stamp * 31 + static_cast<unsigned char>(c);
  }
  return {.path = file.name,
          .size = file.size,
          .mtime_ns = static_cast<int64_t>(stamp >> 1),
          .mode = 0644};
}

std::string text_of(const UninitializedBytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class RemoteCheckpoint final : public CheckpointFolder {
 public:
  RemoteCheckpoint(Fetcher& fetcher, FarFolder folder)
      : fetcher_(fetcher), folder_(std::move(folder)) {}

  [[nodiscard]] fs::path place(const std::string& name) const override {
    return name.empty() ? folder_.address : folder_.address + "/" + name;
  }
  [[nodiscard]] std::vector<std::string> safetensors() const override {
    std::vector<std::string> names = folder_.names;
    std::erase_if(names,
                  [](const std::string& name) { return !name.ends_with(kSafetensorsSuffix); });
    return names;
  }
  [[nodiscard]] bool lists(const std::string& name) const override {
    return std::ranges::find(folder_.names, name) != folder_.names.end();
  }
  [[nodiscard]] bool has(const std::string& name) const override {
    return !folder_.listed || lists(name);
  }
  [[nodiscard]] std::string text(const std::string& name, int64_t most, FileStatus& file) override {
    if (const fs::path local = folder_.cached(name); !local.empty()) {
      file = describe_file(local);
      return read_text_file(local, most);
    }
    const std::shared_ptr<FarFile> far = far_file(name);
    const FarTicket all = fetcher_.ask_all(far, most);
    std::string text = text_of(fetcher_.wait(all));
    file = status_of(*far);
    return text;
  }
  // The same; empty if there is no such file, or if it is longer.
  [[nodiscard]] std::optional<std::string> text_if_there(const std::string& name, int64_t most) {
    if (const fs::path local = folder_.cached(name); !local.empty()) {
      if (describe_file(local).size > most) return std::nullopt;
      return read_text_file(local, most);
    }
    if (folder_.offline || !has(name)) return std::nullopt;
    const FarTicket all = fetcher_.ask_all(far_file(name), most);
    const UninitializedBytes* bytes = fetcher_.wait_if_there(all);
    if (bytes == nullptr) return std::nullopt;
    return text_of(*bytes);
  }
  [[nodiscard]] std::vector<FileFront> fronts(const std::vector<std::string>& names) override;

  [[nodiscard]] const FarFiles& files() const { return files_; }
  [[nodiscard]] const std::vector<std::string>& names() const { return folder_.names; }
  [[nodiscard]] bool is_listed() const { return folder_.listed; }
  [[nodiscard]] fs::path cached(const std::string& name) const { return folder_.cached(name); }

 private:
  [[nodiscard]] std::shared_ptr<FarFile> far_file(const std::string& name) {
    const std::shared_ptr<FarFile> file = folder_.file(name);
    if (folder_.offline) {
      throw Error::input("not in the hub's cache, and HF_HUB_OFFLINE is set").in_file(file->name);
    }
    return files_[file->name] = file;
  }

  Fetcher& fetcher_;
  FarFolder folder_;
  FarFiles files_;
};

// All files are asked at once, for a first part, and then for what the header lacks.
std::vector<FileFront> RemoteCheckpoint::fronts(const std::vector<std::string>& names) {
  struct Asked {
    std::shared_ptr<FarFile> file;
    FarTicket first, rest;
  };
  std::vector<Asked> asked(names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    if (!folder_.cached(names[i]).empty()) continue;
    asked[i].file = far_file(names[i]);
    asked[i].first = fetcher_.ask_front(asked[i].file, kFrontBytes);
  }
  for (Asked& ask : asked) {
    if (!ask.file) continue;
    const UninitializedBytes& first = fetcher_.wait(ask.first);
    const int64_t need = front_bytes(first, ask.file->size) - std::ssize(first);
    if (need > 0) ask.rest = fetcher_.ask(ask.file, std::ssize(first), need);
  }
  std::vector<FileFront> fronts;
  for (size_t i = 0; i < names.size(); ++i) {
    const Asked& ask = asked[i];
    if (!ask.file) {
      fronts.push_back(local_front(folder_.cached(names[i])));
      fronts.back().file.path = place(names[i]);
      continue;
    }
    FileFront front{status_of(*ask.file), {}};
    const UninitializedBytes& first = fetcher_.wait(ask.first);
    front.bytes.assign(first.begin(), first.end());
    if (ask.rest) {
      const UninitializedBytes& rest = fetcher_.wait(ask.rest);
      front.bytes.insert(front.bytes.end(), rest.begin(), rest.end());
    }
    fronts.push_back(std::move(front));
  }
  return fronts;
}

class FarSource final : public Source {
 public:
  explicit FarSource(const std::string& address)
      : ahead_(fetcher_), folder_(fetcher_, open_far_folder(fetcher_, address)) {
    contents_ = list_checkpoint(folder_);
    files_ = folder_.files();
    for (const SourceTensor& tensor : tensors()) {
      const auto at = files_.find(tensor.file);
      file_of_.push_back(at == files_.end() ? nullptr : at->second);
      if (at == files_.end() && !local_.contains(tensor.file)) {
        local_[tensor.file] = folder_.cached(fs::path(tensor.file).filename().string());
      }
    }
  }

  // Thread-safe.
  void read(size_t index, int64_t offset, MutableBytes out) override {
    const SourceTensor& tensor = require_range(index, offset, std::ssize(out));
    const int64_t begin = *tensor.file_offset + offset;
    if (file_of_[index]) return ahead_.read(file_of_[index], begin, out);
    in_file(tensor.file, [&] { PositionedFile(local_.at(tensor.file)).read(begin, out); });
  }
  [[nodiscard]] bool is_far() const override { return true; }
  void expect(const std::vector<SourceRange>& ranges) override {
    std::vector<FarPiece> pieces;
    for (const SourceRange& range : ranges) {
      if (!file_of_[range.tensor]) continue;
      pieces.push_back({file_of_[range.tensor], *tensors()[range.tensor].file_offset + range.offset,
                        range.bytes});
    }
    ahead_.expect(pieces);
  }
  [[nodiscard]] std::vector<std::string> names_beside(bool& complete) const override {
    complete = folder_.is_listed();
    if (complete) return folder_.names();
    return {kUsualNames.begin(), kUsualNames.end()};
  }
  [[nodiscard]] std::optional<std::string> text_beside(const std::string& name,
                                                       int64_t most) override {
    return folder_.text_if_there(name, most);
  }
  [[nodiscard]] std::string sha256_of(const FileStatus& file) const override {
    const auto at = files_.find(file.path.string());
    if (at != files_.end()) return at->second->sha256;
    const auto local = local_.find(file.path.string());
    return local == local_.end() ? "" : hub_sha256(local->second);
  }
  // Each answer was compared with the first one.
  void check_unchanged() const override {}

 private:
  Fetcher fetcher_;
  ReadAhead ahead_;
  RemoteCheckpoint folder_;
  FarFiles files_;
  std::vector<std::shared_ptr<FarFile>> file_of_;  // by tensor; null: in the hub's cache
  std::map<std::string, fs::path> local_;          // of those, by file
};

}  // namespace

std::unique_ptr<Source> open_far_source(const std::string& address) {
  return in_file(address, [&] { return std::make_unique<FarSource>(address); });
}

}  // namespace mxfp4
