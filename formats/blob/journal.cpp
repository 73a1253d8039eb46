#include "formats/blob/journal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "formats/checksum/checksum.hpp"
#include "formats/json/json_fields.hpp"
#include "formats/json/strict_json.hpp"
#include "formats/os/file.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMaxJournalBytes = int64_t{256} << 20;
constexpr size_t kSumDigits = 32;

std::string line_of(const Json& json) {
  const std::string text = json.dump();
  return fmt::format("{} {}\n", checksum_of(text), text);
}

Json to_json(const FinishedFile& file) {
  Json json;
  json["file"] = file.name;
  json["size"] = file.size;
  json["xxh3_128"] = file.xxh3_128;
  json["tensors"] = file.tensors;
  return json;
}

void read_line(const JsonFields& object, JournalContent& content) {
  if (object.has("plan")) {
    content.plan = object.string("plan");
    content.rest = object.strings("rest");
  } else if (object.has("warning")) {
    content.warnings.insert(object.string("warning"));
  } else {
    FinishedFile file{object.string("file"), object.integer("size"), object.string("xxh3_128"),
                      object.strings("tensors")};
    content.files[file.name] = std::move(file);
  }
}

}  // namespace

JournalContent read_journal(const std::filesystem::path& path) {
  JournalContent content;
  try {
    const std::string text = read_text_file(path, kMaxJournalBytes);
    for (size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
      end = text.find('\n', begin);
      if (end == std::string::npos) break;
      const std::string_view line(text.data() + begin, end - begin);
      if (line.size() <= kSumDigits) break;
      const std::string_view body = line.substr(kSumDigits + 1);
      if (line.substr(0, kSumDigits) != checksum_of(body)) break;
      const nlohmann::json json = parse_strict_json(body);
      read_line(JsonFields(json), content);
      content.bytes = static_cast<int64_t>(end) + 1;
    }
  } catch (const Error&) {
    // What cannot be read is not trusted; what came before it is sealed line by line.
  }
  return content;
}

Journal::Journal(std::filesystem::path path) : path_(std::move(path)) {
  descriptor_ = open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0) {
    throw Error::output(fmt::format("{}: cannot create: {}", path_.string(), strerror(errno)));
  }
  // Where files cannot be locked, atomic renames of equal bytes still keep the blob whole.
  if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    close(descriptor_);
    throw Error::output(
        fmt::format("{}: another process is writing this", path_.parent_path().string()));
  }
}

Journal::~Journal() {
  if (descriptor_ >= 0) close(descriptor_);
}

void Journal::append(const std::string& text) {
  for (std::string_view left = text; !left.empty();) {
    const ssize_t written = ::write(descriptor_, left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      throw Error::output(fmt::format("{}: cannot write: {}", path_.string(), strerror(errno)));
    }
    left.remove_prefix(static_cast<size_t>(written));
  }
  if (fdatasync(descriptor_) != 0) {
    throw Error::output(fmt::format("{}: cannot fsync: {}", path_.string(), strerror(errno)));
  }
}

void Journal::cut(int64_t bytes) {
  if (ftruncate(descriptor_, bytes) != 0) {
    throw Error::output(fmt::format("{}: cannot truncate: {}", path_.string(), strerror(errno)));
  }
}

// In place, since the lock is on this very file.
void Journal::begin(const std::string& plan, const std::vector<std::string>& rest) {
  cut(0);
  Json head;
  head["plan"] = plan;
  head["rest"] = rest;
  append(line_of(head));
  warnings_.clear();
}

void Journal::resume(const JournalContent& content) {
  cut(content.bytes);
  warnings_ = content.warnings;
}

void Journal::add(const FinishedFile& file, const std::vector<std::string>& warnings) {
  std::string text;
  for (const std::string& warning : warnings) {
    if (warnings_.insert(warning).second) text += line_of(Json::object({{"warning", warning}}));
  }
  append(text + line_of(to_json(file)));
}

void Journal::remove() {
  std::error_code ignored;  // a journal that stays behind a manifest means nothing
  std::filesystem::remove(path_, ignored);
}

}  // namespace mxfp4
