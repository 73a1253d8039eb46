#include "formats/output/far_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <span>
#include <utility>

#include "formats/blob/blob_reader.hpp"
#include "formats/blob/journal.hpp"
#include "formats/output/observe.hpp"
#include "formats/remote/far_range.hpp"
#include "formats/remote/url.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

// A part fills a connection for a second or so. Object storage takes 10,000 of them, 312 GiB.
constexpr int64_t kPartBytes = int64_t{32} << 20;

constexpr const char* kIfNone = "if-none-match:*";

// The prefix, and what is there, anew.
FarFolder open_prefix(Fetcher& fetcher, const std::string& out) {
  return in_file(out, [&] { return open_s3_folder(fetcher, out.substr(strlen("s3://"))); });
}

// Whether an object below OUT has a name that only this program gives.
bool is_blob_file(const fs::path& object) {
  const fs::path name = object.filename();
  const fs::path& top = *object.begin();
  return (top == name || top == kBlobFolder || is_rank_directory(top.string())) &&
         (name == kManifestName || name == kIndexName || is_layer_file_name(name.string()) ||
          (name.string().starts_with("rest-") && name.extension() == ".safetensors"));
}

}  // namespace

FarOutput::FarOutput(std::string out)
    : out_(std::move(out)),
      folder_(open_prefix(*fetcher_, out_)),
      own_(std::to_string(std::random_device()())) {
  const auto journal = object(kFarJournal);
  const FarTicket front = fetcher_->ask_front(journal, 1);
  if (fetcher_->wait_if_there(front) != nullptr) tag_ = journal->validator;
}

FarOutput::~FarOutput() {
  if (!sent_) return;
  try {
    fetcher_.emplace();  // no part goes on
    (void)fetcher_->wait(parts_.emplace_back(ask("DELETE", sent_)));
  } catch (const std::exception&) {
    // The parts stay until the bucket's own rules remove them.
  }
}

std::shared_ptr<FarFile> FarOutput::object(const std::string& name,
                                           const std::string& query) const {
  return std::make_shared<FarFile>(FarFile{.name = out_ + "/" + name,
                                           .url = folder_.base + escaped(name, "/") + query,
                                           .access = folder_.access});
}

FarTicket FarOutput::ask(const std::string& method, std::shared_ptr<FarFile> object,
                         const std::string& text, const std::string& condition) {
  const ReadFar body = [text](int64_t offset, MutableBytes out) {
    std::memcpy(out.data(), text.data() + offset, out.size());
  };
  return fetcher_->add({.file = std::move(object),
                        .size = std::ssize(text),
                        .method = method,
                        .condition = condition,
                        .body = body});
}

// Gives the ETag. An object that is there with this text is well, too: an answer may get lost.
std::string FarOutput::put(const std::string& name, const std::string& text,
                           const std::string& condition) {
  const auto file = object(name);
  const FarTicket ticket = ask("PUT", file, text, condition);
  if (fetcher_->wait_if_there(ticket) != nullptr) return ticket->tag;
  const FarTicket front = fetcher_->ask_front(file, std::ssize(text) + 1);
  const UninitializedBytes* there = fetcher_->wait_if_there(front);
  if (there != nullptr && std::ranges::equal(*there, std::as_bytes(std::span(text)))) {
    return file->validator;
  }
  throw Error::output("another process is writing here").in_file(out_);
}

void FarOutput::record(const fs::path& journal) {
  const std::string before = std::exchange(tag_, "");  // another one's is not removed
  const std::string text = text_at(journal, INT64_MAX) + own_;
  tag_ = put(kFarJournal, text, before.empty() ? kIfNone : "if-match:" + before);
}

void FarOutput::remove_journal() {
  if (std::exchange(tag_, "").empty()) return;
  const FarTicket asked = ask("DELETE", object(kFarJournal));
  (void)fetcher_->wait(asked);
}

void FarOutput::clear() {
  const std::vector<std::string> names = open_prefix(*fetcher_, out_).names;
  for (const bool manifests : {true, false}) {
    std::vector<FarTicket> asked;
    for (const std::string& name : names) {
      const bool now = is_blob_file(name) && name.ends_with(kManifestName) == manifests;
      if (now) asked.push_back(ask("DELETE", object(name)));
    }
    for (const FarTicket& ticket : asked) (void)fetcher_->wait(ticket);
  }
}

void FarOutput::send(const std::string& name, const fs::path& from) {
  const auto file = std::make_shared<const PositionedFile>(from);
  const ReadFar body = [file](int64_t offset, MutableBytes out) { file->read(offset, out); };
  const FarTicket begun = ask("POST", object(name, "?uploads="));
  (void)fetcher_->wait(begun);
  const std::string& answer = begun->answer;
  const size_t at = answer.find("<UploadId>") + strlen("<UploadId>");
  const std::string id = "uploadId=" + escaped(answer.substr(at, answer.find('<', at) - at));
  sent_ = object(name, "?" + id);
  for (int64_t begin = 0; begin < file->size() || begin == 0; begin += kPartBytes) {
    parts_.push_back(fetcher_->add(
        {.file = object(name, fmt::format("?partNumber={}&{}", parts_.size() + 1, id)),
         .begin = begin,
         .size = std::min(kPartBytes, file->size() - begin),
         .method = "PUT",
         .body = body}));
  }
}

void FarOutput::finish() {
  std::string list;
  for (size_t i = 0; i < parts_.size(); ++i) {
    (void)fetcher_->wait(parts_[i]);
    list += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", i + 1,
                        parts_[i]->tag);
  }
  list = fmt::format("<CompleteMultipartUpload>{}</CompleteMultipartUpload>", list);
  (void)fetcher_->wait(parts_.emplace_back(ask("POST", sent_, list)));
  sent_.reset();
  parts_.clear();
}

void FarOutput::complete(const fs::path& blob, const std::vector<Manifest>& manifests, bool again) {
  for (const std::string_view name : {kIndexName, kManifestName}) {
    for (const Manifest& manifest : manifests) {
      const bool index = name == kIndexName;
      put((blob / rank_directory(manifest.rank) / name).lexically_normal().string(),
          index ? write_index(manifest) : write_manifest(manifest), index || again ? "" : kIfNone);
    }
  }
  remove_journal();
}

}  // namespace mxfp4
