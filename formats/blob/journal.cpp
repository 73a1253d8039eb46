#include "formats/blob/journal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "formats/blob/layout_facts.hpp"
#include "formats/blob/planned.hpp"
#include "formats/checksum/checksum.hpp"
#include "formats/json/json_fields.hpp"
#include "formats/json/strict_json.hpp"
#include "formats/os/atomic_file.hpp"
#include "formats/os/file.hpp"
#include "formats/os/interrupts.hpp"
#include "formats/remote/files_at.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMaxJournalBytes = int64_t{256} << 20;
constexpr size_t kSumDigits = 32;
constexpr std::string_view kJournalEnd = "progress";

std::string line_of(const Json& json) {
  const std::string text = json.dump();
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

void read_head(const JsonFields& object, JournalHead& head) {
  head.plan = object.string("plan");
  const JsonFields seen = object.object("source_seen");
  head.source = {seen.string("machine"), seen.string("place"), seen.string("stamp")};
  if (object.has("shard")) head.shard = {object.integer("shard"), object.integer("shards")};
  object.each("ranks", [&](const JsonFields& item) {
    head.planned.push_back(manifest_from_json(item));
    check_layout_facts(head.planned.back());
  });
  if (head.planned.empty() || plan_identity(head.planned) != head.plan) {
    throw Error::input("plan: not that of its ranks");
  }
}

void read_line(const JsonFields& object, JournalContent& content) {
  if (object.has("plan")) {
    read_head(object, content);
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

bool is_journal_name(std::string_view name) {
  return name == kJournalEnd || (name.starts_with("shard-") && name.ends_with(kJournalEnd));
}

}  // namespace

JournalContent read_journal(const std::filesystem::path& path) {
  JournalContent content;
  try {
    const std::string text = text_at(path, kMaxJournalBytes);
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
  } catch (const Error& error) {
    const bool may_be_good = is_address(path) || error.is_unreadable();
    if (may_be_good) throw Error(error).in_file(path.string());
    // A line that cannot be read ends the journal. The lines before it have checksums of their own.
  }
  return content;
}

std::string journal_name(const std::optional<Shard>& shard) {
  if (!shard) return std::string(kJournalEnd);
  return fmt::format("shard-{:03}-of-{:03}.{}", shard->index, shard->count, kJournalEnd);
}

std::vector<JournalContent> read_journals(const std::filesystem::path& directory) {
  std::error_code error;
  std::vector<std::filesystem::path> paths;
  const bool far = is_address(directory);
  if (far && is_listed_at(directory / kFarJournal)) paths.push_back(directory / kFarJournal);
  for (const auto& entry : list_directory(directory, error)) {
    if (is_journal_name(entry.path().filename().string())) paths.push_back(entry.path());
  }
  const bool missing =
      error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory;
  if (error && !missing) {
    throw Error::input(error.message()).in_file(directory.string()).unreadable();
  }
  std::ranges::sort(paths);
  std::vector<JournalContent> journals;
  for (const std::filesystem::path& path : paths) {
    journals.push_back(read_journal(path));
    if (journals.back().bytes == 0) journals.pop_back();
  }
  return journals;
}

std::vector<Manifest> filled(std::vector<Manifest> planned, const FinishedFiles& files) {
  const auto find = [&](const std::string& name) -> const FinishedFile& {
    const auto found = files.find(name);
    if (found == files.end()) throw Error::input(fmt::format("{}: not written yet", name));
    return found->second;
  };
  for (Manifest& manifest : planned) {
    for (ManifestLayer& layer : manifest.layers) {
      const FinishedFile& file = find(name_in_blob(manifest.rank, layer.file));
      layer.size = file.size;
      layer.xxh3_128 = file.xxh3_128;
      if (file.tensors.size() != layer.tensors.size()) {
        throw Error::input(fmt::format("{}: recorded with other tensors", file.name));
      }
      for (size_t i = 0; i < layer.tensors.size(); ++i) layer.tensors[i].xxh3_128 = file.tensors[i];
    }
    for (ManifestFile& entry : manifest.rest) {
      const FinishedFile& file = find("../" + entry.name);
      entry.size = file.size;
      entry.xxh3_128 = file.xxh3_128;
    }
  }
  return planned;
}

std::vector<FinishedFile> files_of(const Manifest& manifest) {
  std::vector<FinishedFile> files;
  for (const ManifestLayer& layer : manifest.layers) {
    files.push_back({name_in_blob(manifest.rank, layer.file), layer.size, layer.xxh3_128});
    for (const ManifestTensor& tensor : layer.tensors) {
      files.back().tensors.push_back(tensor.xxh3_128);
    }
  }
  return files;
}

std::vector<FinishedFile> rest_of(const Manifest& manifest) {
  std::vector<FinishedFile> files;
  for (const ManifestFile& file : manifest.rest) {
    files.push_back({"../" + file.name, file.size, file.xxh3_128});
  }
  return files;
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
  json["source_seen"] = {
      {"machine", head.source.machine}, {"place", head.source.place}, {"stamp", head.source.stamp}};
  if (head.shard) {
    json["shard"] = head.shard->index;
    json["shards"] = head.shard->count;
  }
  json["ranks"] = Json::array();
  for (const Manifest& rank : head.planned) {
    Manifest planned = without_data(rank);
    planned.warnings = rank.warnings;  // of the plan
    json["ranks"].push_back(manifest_to_json(planned));
  }
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

// Whether the name still is the name of the open file.
bool Journal::has_its_name() const {
  struct stat opened {};
  return fstat(descriptor_, &opened) == 0 &&
         directory_.entry(name_) == FileIdentity{opened.st_dev, opened.st_ino};
}

}  // namespace mxfp4
