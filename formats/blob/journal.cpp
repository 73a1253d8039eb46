#include "formats/blob/journal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "formats/checksum/checksum.hpp"
#include "formats/json/json_fields.hpp"
#include "formats/json/strict_json.hpp"
#include "formats/os/atomic_file.hpp"
#include "formats/os/file.hpp"
#include "formats/os/interrupts.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMaxJournalBytes = int64_t{256} << 20;
constexpr size_t kSumDigits = 32;

std::string line_of(const Json& json) {
  // Values of flags may hold bytes that are not UTF-8.
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return fmt::format("{} {}\n", checksum_of(text), text);
}

Json to_json(const FinishedFile& file) {
  Json json = Json::object();
  json["file"] = file.name;
  json["size"] = file.size;
  json["xxh3_128"] = file.xxh3_128;
  json["tensors"] = file.tensors;
  return json;
}

void read_line(const JsonFields& object, JournalContent& content) {
  if (object.has("plan")) {
    content.plan = object.string("plan");
    content.stamp = object.string("source");
    content.layer_files = object.integer("layer_files");
    content.rest = object.strings("rest");
    content.flags.clear();
    for (const auto& [name, value] : object.object("flags").value().items()) {
      if (!value.is_string()) throw Error::input("flags: not text");
      content.flags[name] = value.get<std::string>();
    }
  } else if (object.has("ready")) {
    content.ready = true;
  } else if (object.has("warning")) {
    content.warnings.insert(object.string("warning"));
  } else {
    FinishedFile file{object.string("file"), object.integer("size"), object.string("xxh3_128"),
                      object.strings("tensors")};
    content.files[file.name] = std::move(file);
  }
}

// Whether this process now holds the lock, or the file system has no locks. Without locks, two
// processes rename files of equal bytes into place, which keeps the blob whole, too.
bool locked(int descriptor) {
  return flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

[[noreturn]] void busy(const Directory& directory) {
  throw Error::output("another process is writing this").in_file(directory.path().string());
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
    // A line that cannot be read ends the journal. The lines before it have checksums of their own.
  }
  return content;
}

bool is_cut_journal(const std::filesystem::path& path) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  constexpr std::string_view kBehind = " {\"plan\":";
  try {
    std::string text = read_text_file(path, kMaxJournalBytes);
    text.erase(text.find_last_not_of('\0') + 1);
    const std::string_view sum = std::string_view(text).substr(0, kSumDigits);
    const std::string_view behind = std::string_view(text).substr(sum.size(), kBehind.size());
    return sum.find_first_not_of(kDigits) == std::string_view::npos && kBehind.starts_with(behind);
  } catch (const Error&) {
    return false;
  }
}

Journal::Journal(Directory directory, std::string name)
    : directory_(std::move(directory)), name_(std::move(name)) {
  while (!lock_existing() && !create()) {
  }
}

Journal::~Journal() {
  if (descriptor_ >= 0) close(descriptor_);
}

// False if there is no journal.
bool Journal::lock_existing() {
  for (;;) {
    descriptor_ = openat(directory_.descriptor(), name_.c_str(),
                         O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (descriptor_ < 0 && errno == ENOENT) return false;
    struct stat found {};
    if (descriptor_ < 0 || fstat(descriptor_, &found) != 0 || !S_ISREG(found.st_mode)) {
      if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
      throw Error::output("not a file that this program wrote").in_file(path().string());
    }
    if (!locked(descriptor_)) {
      close(std::exchange(descriptor_, -1));
      busy(directory_);
    }
    if (has_its_name()) return true;
    close(descriptor_);  // another process replaced the file before it gave up the lock
  }
}

// False if another process has created it meanwhile.
bool Journal::create() {
  descriptor_ = openat(directory_.descriptor(), name_.c_str(),
                       O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (descriptor_ < 0 && errno == EEXIST) return false;
  if (descriptor_ < 0) {
    throw Error::output(fmt::format("cannot create: {}", strerror(errno))).in_file(path().string());
  }
  if (!locked(descriptor_)) {
    close(std::exchange(descriptor_, -1));
    busy(directory_);
  }
  return true;
}

// Never leaves the journal unlocked: the new file is locked before it gets the name, and the old
// file stays locked until then.
void Journal::replace(std::string_view text) {
  std::string temporary;
  const int created = create_temporary(directory_, name_, temporary);
  const int before = std::exchange(descriptor_, created);
  try {
    if (!locked(created)) busy(directory_);
    append(text);
    const int in = directory_.descriptor();
    if (renameat(in, temporary.c_str(), in, name_.c_str()) != 0) {
      throw Error::output(fmt::format("cannot rename into place: {}", strerror(errno)))
          .in_file(path().string());
    }
  } catch (const Error&) {
    unlinkat(directory_.descriptor(), temporary.c_str(), 0);
    close(std::exchange(descriptor_, before));
    throw;
  }
  close(before);
  directory_.sync();
}

void Journal::append(std::string_view text) {
  Interrupts interrupts;
  for (std::string_view left = text; !left.empty();) {
    const ssize_t written = ::write(descriptor_, left.data(), left.size());
    if (written < 0 && interrupts.again()) continue;
    if (written <= 0) {
      throw Error::output(fmt::format("cannot write: {}", strerror(write_error(written))))
          .in_file(path().string());
    }
    left.remove_prefix(static_cast<size_t>(written));
  }
  if (const int code = sync_file(descriptor_, /*data_only=*/true); code != 0) {
    throw Error::output(fmt::format("cannot fsync: {}", strerror(code))).in_file(path().string());
  }
}

void Journal::begin(const JournalHead& head) {
  Json json = Json::object();
  json["plan"] = head.plan;
  json["source"] = head.stamp;
  json["layer_files"] = head.layer_files;
  json["rest"] = head.rest;
  json["flags"] = head.flags;
  replace(line_of(json));
  warnings_.clear();
}

void Journal::resume(const JournalContent& content) {
  std::string text(static_cast<size_t>(content.bytes), '\0');
  Interrupts interrupts;
  for (size_t done = 0; done < text.size();) {
    const ssize_t got =
        pread(descriptor_, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (got < 0 && interrupts.again()) continue;
    if (got <= 0) throw Error::output("cannot be read again").in_file(path().string());
    done += static_cast<size_t>(got);
  }
  replace(text);
  warnings_ = content.warnings;
}

void Journal::add(const FinishedFile& file, const std::vector<std::string>& warnings) {
  std::string text;
  for (const std::string& warning : warnings) {
    if (warnings_.insert(warning).second) text += line_of(Json::object({{"warning", warning}}));
  }
  append(text + line_of(to_json(file)));
}

void Journal::ready() { append(line_of(Json::object({{"ready", true}}))); }

// A journal beside a complete manifest does no harm.
std::string Journal::remove() {
  const bool gone = !has_its_name() && !directory_.state(name_) && errno == ENOENT;
  if (gone || (has_its_name() && unlinkat(directory_.descriptor(), name_.c_str(), 0) == 0)) {
    return "";
  }
  return fmt::format("{}: cannot be removed; the result is complete without it", path().string());
}

// Whether the name still is the name of the open file.
bool Journal::has_its_name() const {
  struct stat opened {};
  const std::optional<FileState> named = directory_.state(name_);
  return named && fstat(descriptor_, &opened) == 0 &&
         named->identity == file_state(opened).identity;
}

}  // namespace mxfp4
