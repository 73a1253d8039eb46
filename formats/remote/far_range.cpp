#include "formats/remote/far_range.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

#include "formats/remote/s3_signature.hpp"
#include "formats/remote/url.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {
namespace {

const curl::Library& easy_lib() { return curl::library(); }

constexpr size_t kMostOtherBytes = 100000;  // of an answer that is not the file

// What of an answer's head counts.
constexpr std::array<std::string_view, 6> kFields = {
    "etag",           "last-modified",    "content-range",
    "content-length", "content-encoding", "x-linked-etag"};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

bool take_text(std::string_view& text, std::string_view expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(expected.size());
  return true;
}

// "bytes 0-99/1000"
struct ContentRange {
  int64_t first = -1;
  int64_t last = -1;
  int64_t total = -1;
};

std::optional<ContentRange> parse_content_range(std::string_view text) {
  ContentRange range;
  if (!take_text(text, "bytes ")) return std::nullopt;
  range.first = take_number(text);
  if (!take_text(text, "-")) return std::nullopt;
  range.last = take_number(text);
  if (!take_text(text, "/")) return std::nullopt;
  range.total = take_number(text);
  if (!text.empty() || range.first < 0 || range.last < range.first || range.total <= range.last) {
    return std::nullopt;
  }
  return range;
}

Error changed_far(std::string_view what) {
  return Error::input(fmt::format("changed while it was read: {}", what));
}

Error no_ranges() {
  return Error::input("the server has no ranges: it sends the whole file")
      .hint("download the checkpoint, then give its directory");
}

void learn_validator(FarFile& file, const FarRange& range) {
  std::string now = range.field("etag");
  if (now.empty()) now = range.field("last-modified");
  if (file.validator.empty()) file.validator = now;
  if (file.validator != now) throw changed_far("the server says that it is another one");
}

// Takes the head of an answer that brings a range. Throws unless it is the range that was asked for.
void take_range_head(FarRange& range) {
  const std::string text = range.field("content-range");
  const auto is = parse_content_range(text);
  const int64_t first = range.begin + static_cast<int64_t>(range.got);
  if (!is || is->first != first) {
    throw Error::input(
        fmt::format("the server answers a request for bytes from {} on with "
                    "Content-Range {}",
                    first, in_quotes(text)));
  }
  FarFile& file = *range.file;
  learn_validator(file, range);
  if (file.size >= 0 && file.size != is->total) {
    throw changed_far(fmt::format("{} bytes, {} before", is->total, file.size));
  }
  if (range.front) range.size = std::min(range.size, is->total);
  const int64_t end = range.begin + range.size;
  std::string_view length = range.fields["content-length"];
  const int64_t stated = length.empty() ? is->last - first + 1 : take_number(length);
  if (is->last != end - 1 || stated != end - first) {
    throw Error::input(
        fmt::format("the server answers a request for bytes {} to {} with {} bytes, "
                    "Content-Range {}",
                    first, end - 1, stated, in_quotes(text)));
  }
  if (file.size < 0) file.size = is->total;  // once: others may read it from then on
}

// libcurl's functions for what arrives. Fewer bytes than were given end the transfer.
size_t take_body(char* data, size_t /*one*/, size_t count, void* context) {
  FarRange& range = *static_cast<FarRange*>(context);
  try {
    if (!std::exchange(range.looked, true)) look_at_head(range);
    if (!range.wanted) {
      range.other += count;
      return range.other > kMostOtherBytes ? 0 : count;
    }
    if (count > static_cast<size_t>(range.size) - range.got) {
      if (range.whole) throw no_ranges();
      throw Error::input("the server sends more bytes than it was asked for");
    }
    if (range.bytes.size() < range.got + count) range.bytes.resize(range.got + count);
  } catch (const Error& error) {
    range.problem = error;
    return 0;
  }
  std::memcpy(range.bytes.data() + range.got, data, count);
  range.got += count;
  return count;
}

size_t take_field(char* data, size_t /*one*/, size_t count, void* context) {
  FarRange& range = *static_cast<FarRange*>(context);
  const std::string_view line(data, count);
  if (line.starts_with("HTTP/")) range.fields.clear();  // of a proxy's answer, or an earlier one
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return count;
  std::string name(line.substr(0, colon));
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  }
  if (std::ranges::find(kFields, name) != kFields.end()) {
    range.fields[name] = trimmed(line.substr(colon + 1));
  }
  return count;
}

void set_text(void* easy, curl::Option option, const std::string& text) {
  if (easy_lib().easy_setopt(easy, option, text.c_str()) == curl::kOk) return;
  throw Error::input("the system's libcurl is too old for this kind of address");
}

void set_number(void* easy, curl::Option option, long number) {
  easy_lib().easy_setopt(easy, option, number);
}

// The certificates that the user names, in the variables of curl and of OpenSSL.
void set_certificates(void* easy) {
  for (const char* name : {"CURL_CA_BUNDLE", "SSL_CERT_FILE"}) {
    const char* file = std::getenv(name);
    if (file == nullptr || *file == '\0') continue;
    set_text(easy, curl::kCaInfo, file);
    break;
  }
  const char* folder = std::getenv("SSL_CERT_DIR");
  if (folder != nullptr && *folder != '\0') set_text(easy, curl::kCaPath, folder);
}

// What goes to the host for which the user gave it, and to no other.
void set_secrets(FarRange& range) {
  const FarAccess& access = *range.file->access;
  if (origin_of(range.url) != origin_of(range.file->url)) return;
  if (!access.s3.id.empty()) {
    // A signature tells nobody the key.
    const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
    for (const std::string& field :
         signed_fields(access.s3, range.url,
                       fmt::format("{:%Y%m%dT%H%M%SZ}",
                                   fmt::gmtime(std::chrono::system_clock::to_time_t(now))))) {
      range.headers = easy_lib().slist_append(range.headers, field.c_str());
    }
  }
  if (!is_private(range.url)) return;
  if (access.netrc) set_number(range.easy, curl::kNetrc, curl::kNetrcOptional);
  if (access.bearer.empty()) return;
  set_number(range.easy, curl::kHttpAuth, curl::kAuthBearer);
  set_text(range.easy, curl::kBearer, access.bearer);
  // A proxy would see it.
  if (range.url.starts_with("http://")) set_text(range.easy, curl::kNoProxy, "*");
}

}  // namespace

int64_t take_number(std::string_view& text) {
  int64_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return -1;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

void look_at_head(FarRange& range) {
  long status = 0;
  easy_lib().easy_getinfo(range.easy, curl::kResponseCode, &status);
  range.whole = range.front && status == 200;
  range.wanted = range.whole || status == 206;
  if (!range.wanted && status == 200) throw no_ranges();
  if (!range.wanted) return;
  const std::string encoding = range.field("content-encoding");
  if (!encoding.empty() && encoding != "identity") {
    throw Error::input(fmt::format("the server sends it encoded: {}", in_quotes(encoding)));
  }
  if (!range.whole) return take_range_head(range);
  learn_validator(*range.file, range);
  std::string_view length = range.fields["content-length"];
  if (take_number(length) > range.size) throw no_ranges();
}

void configure_attempt(FarRange& range, int64_t stall_seconds) {
  void* easy = range.easy;
  set_text(easy, curl::kUrl, range.url);
  set_text(easy, curl::kUserAgent, "mxfp4-repack/" MXFP4_REPACK_VERSION);
  set_number(easy, curl::kNoSignal, 1);
  set_number(easy, curl::kPathAsIs, 1);
  set_number(easy, curl::kHttpVersion, curl::kHttp11);  // a connection each, not one for all
  set_number(easy, curl::kBufferSize, long{512} << 10);
  set_number(easy, curl::kConnectTimeout, 30);
  set_number(easy, curl::kLowSpeedLimit, 1);
  set_number(easy, curl::kLowSpeedTime, static_cast<long>(stall_seconds));
  set_certificates(easy);
  set_secrets(range);
  const int64_t first = range.begin + static_cast<int64_t>(range.got);
  set_text(easy, curl::kRange, fmt::format("{}-{}", first, range.begin + range.size - 1));
  easy_lib().easy_setopt(easy, curl::kHttpHeader, range.headers);
  easy_lib().easy_setopt(easy, curl::kErrorBuffer, range.words.data());
  easy_lib().easy_setopt(easy, curl::kWriteFunction, &take_body);
  easy_lib().easy_setopt(easy, curl::kWriteData, &range);
  easy_lib().easy_setopt(easy, curl::kHeaderFunction, &take_field);
  easy_lib().easy_setopt(easy, curl::kHeaderData, &range);
}

}  // namespace mxfp4
