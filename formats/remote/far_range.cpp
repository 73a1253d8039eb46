#include "formats/remote/far_range.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <span>
#include <system_error>
#include <utility>

#include "formats/remote/curl.hpp"
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

Error changed_far(std::string_view what) {
  return Error::input(fmt::format("changed while it was read: {}", what));
}

Error no_ranges() {
  return Error::input("the server has no ranges: it sends the whole file")
      .hint("download the checkpoint, then give its directory");
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

// One request and what comes of it.
class Attempt {
 public:
  Attempt(void* easy, FarRange& range, const std::string& url, const std::atomic<bool>& stop)
      : easy_(easy), range_(range), url_(url), stop_(stop) {}
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;
  ~Attempt() { easy_lib().slist_free_all(headers_); }

  void configure(int64_t stall_seconds);
  FarAnswer perform();

 private:
  static size_t take_body(char* data, size_t one, size_t count, void* context);
  static size_t give_body(char* out, size_t one, size_t count, void* context);
  static size_t take_field(char* data, size_t one, size_t count, void* context);
  static int look_at_stop(void* context, int64_t, int64_t, int64_t, int64_t);
  void set_secrets();
  void set_body();
  void look_at_head();
  void learn_validator();
  void take_range_head();
  [[nodiscard]] std::string field(std::string_view name) const {
    const auto at = fields_.find(name);
    return at == fields_.end() ? "" : at->second;
  }

  void* easy_;
  FarRange& range_;
  const std::string& url_;
  const std::atomic<bool>& stop_;
  void* headers_ = nullptr;  // of the request
  std::array<char, curl::kErrorBytes> words_{};
  std::map<std::string, std::string, std::less<>> fields_;
  bool looked_ = false;         // at the head of the answer
  bool wanted_ = false;         // what comes is of the file
  bool whole_ = false;          // all of it, though a front was asked for
  size_t other_ = 0;            // bytes of another answer
  size_t given_ = 0;            // bytes that were sent
  std::exception_ptr problem_;  // of a callback, through which none may pass
};

void Attempt::learn_validator() {
  std::string now = field("etag");
  if (now.empty()) now = field("last-modified");
  if (range_.file->size < 0) range_.file->validator = now;
  if (range_.file->validator == now) return;
  throw changed_far("the server says that it is another one");
}

// Takes the head of an answer that brings a range. Throws unless it is the range that was asked for.
void Attempt::take_range_head() {
  const std::string text = field("content-range");  // "bytes 0-99/1000"
  std::string_view behind = std::string_view(text).substr(text.rfind('/') + 1);
  const int64_t total = take_number(behind);
  FarFile& file = *range_.file;
  learn_validator();
  if (total >= 0 && file.size >= 0 && file.size != total) {
    throw changed_far(fmt::format("{} bytes, {} before", total, file.size));
  }
  if (range_.front && total > 0) range_.size = std::min(range_.size, total);
  const int64_t first = range_.begin + static_cast<int64_t>(range_.got);
  const int64_t end = range_.begin + range_.size;
  const std::string length = field("content-length");
  const bool has_length = length.empty() || length == std::to_string(end - first);
  if (!has_length || text != fmt::format("bytes {}-{}/{}", first, end - 1, total)) {
    throw Error::input(
        fmt::format("the server answers a request for bytes {} to {} with {} bytes, "
                    "Content-Range {}",
                    first, end - 1, length, in_quotes(text)));
  }
  if (range_.front) file.size = total;  // others read it
}

// Before the first byte of an answer is taken.
void Attempt::look_at_head() {
  long status = 0;
  easy_lib().easy_getinfo(easy_, curl::kResponseCode, &status);
  whole_ = range_.front && status == 200;
  wanted_ = whole_ || status == 206;
  if (!wanted_ && status == 200) throw no_ranges();
  if (!wanted_) return;
  const std::string encoding = field("content-encoding");
  if (!encoding.empty() && encoding != "identity") {
    throw Error::input(fmt::format("the server sends it encoded: {}", in_quotes(encoding)));
  }
  if (!whole_) return take_range_head();
  learn_validator();
  std::string_view length = fields_["content-length"];
  if (take_number(length) > range_.size) throw no_ranges();
}

// libcurl's functions for what arrives. Fewer bytes than were given end the transfer.
size_t Attempt::take_body(char* data, size_t /*one*/, size_t count, void* context) {
  Attempt& at = *static_cast<Attempt*>(context);
  FarRange& range = at.range_;
  try {
    if (range.body) {
      range.answer.append(data, count);
      return range.answer.size() > kMostOtherBytes ? 0 : count;
    }
    if (!std::exchange(at.looked_, true)) at.look_at_head();
    if (!at.wanted_) {
      at.other_ += count;
      return at.other_ > kMostOtherBytes ? 0 : count;
    }
    if (count > static_cast<size_t>(range.size) - range.got) {
      if (at.whole_) throw no_ranges();
      throw Error::input("the server sends more bytes than it was asked for");
    }
    if (range.bytes.size() < range.got + count) range.bytes.resize(range.got + count);
  } catch (...) {
    at.problem_ = std::current_exception();
    return 0;
  }
  std::memcpy(range.bytes.data() + range.got, data, count);
  range.got += count;
  return count;
}

size_t Attempt::give_body(char* out, size_t /*one*/, size_t count, void* context) try {
  Attempt& at = *static_cast<Attempt*>(context);
  const size_t size = std::min(count, static_cast<size_t>(at.range_.size) - at.given_);
  const int64_t from = at.range_.begin + static_cast<int64_t>(at.given_);
  if (size > 0) at.range_.body(from, std::as_writable_bytes(std::span(out, size)));
  at.given_ += size;
  return size;
} catch (...) {
  static_cast<Attempt*>(context)->problem_ = std::current_exception();
  return curl::kReadAbort;
}

size_t Attempt::take_field(char* data, size_t /*one*/, size_t count, void* context) try {
  Attempt& at = *static_cast<Attempt*>(context);
  const std::string_view line(data, count);
  if (line.starts_with("HTTP/")) at.fields_.clear();  // of a proxy's answer, or an earlier one
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return count;
  std::string name(line.substr(0, colon));
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  }
  if (std::ranges::find(kFields, name) != kFields.end()) {
    at.fields_[name] = trimmed(line.substr(colon + 1));
  }
  return count;
} catch (...) {
  static_cast<Attempt*>(context)->problem_ = std::current_exception();
  return 0;
}

int Attempt::look_at_stop(void* context, int64_t, int64_t, int64_t, int64_t) {
  return static_cast<Attempt*>(context)->stop_ ? 1 : 0;
}

// What goes to the host for which the user gave it, and to no other.
void Attempt::set_secrets() {
  const FarAccess& access = *range_.file->access;
  if (origin_of(url_) != origin_of(range_.file->url)) return;
  if (!access.s3.id.empty()) {
    // A signature tells nobody the key.
    const std::string now = fmt::format("{:%Y%m%dT%H%M%SZ}", fmt::gmtime(std::time(nullptr)));
    for (const std::string& field :
         signed_fields(access.s3, range_.method, url_, now, range_.condition)) {
      headers_ = easy_lib().slist_append(headers_, field.c_str());
    }
  }
  if (!is_private(url_)) return;
  if (access.netrc) set_number(easy_, curl::kNetrc, curl::kNetrcOptional);
  if (access.bearer.empty()) return;
  set_number(easy_, curl::kHttpAuth, curl::kAuthBearer);
  set_text(easy_, curl::kBearer, access.bearer);
  // A proxy would see it.
  if (url_.starts_with("http://")) set_text(easy_, curl::kNoProxy, "*");
}

void Attempt::set_body() {
  range_.answer.clear();
  set_text(easy_, curl::kCustomRequest, range_.method);
  set_number(easy_, curl::kUpload, 1);
  easy_lib().easy_setopt(easy_, curl::kInFileSizeLarge, range_.size);
  easy_lib().easy_setopt(easy_, curl::kReadFunction, &give_body);
  easy_lib().easy_setopt(easy_, curl::kReadData, this);
  headers_ = easy_lib().slist_append(headers_, "Expect:");  // no second to wait for a word to go on
}

void Attempt::configure(int64_t stall_seconds) {
  set_text(easy_, curl::kUrl, url_);
  set_text(easy_, curl::kUserAgent, "mxfp4-repack/" MXFP4_REPACK_VERSION);
  set_number(easy_, curl::kNoSignal, 1);
  set_number(easy_, curl::kPathAsIs, 1);
  set_number(easy_, curl::kHttpVersion, curl::kHttp11);  // a connection each, not one for all
  set_number(easy_, curl::kBufferSize, long{512} << 10);
  set_number(easy_, curl::kConnectTimeout, 30);
  set_number(easy_, curl::kLowSpeedLimit, 1);
  set_number(easy_, curl::kLowSpeedTime, static_cast<long>(stall_seconds));
  set_number(easy_, curl::kNoProgress, 0);
  set_certificates(easy_);
  set_secrets();
  const int64_t first = range_.begin + static_cast<int64_t>(range_.got);
  const std::string asked = fmt::format("{}-{}", first, range_.begin + range_.size - 1);
  range_.body ? set_body() : set_text(easy_, curl::kRange, asked);
  easy_lib().easy_setopt(easy_, curl::kHttpHeader, headers_);
  easy_lib().easy_setopt(easy_, curl::kErrorBuffer, words_.data());
  easy_lib().easy_setopt(easy_, curl::kWriteFunction, &take_body);
  easy_lib().easy_setopt(easy_, curl::kWriteData, this);
  easy_lib().easy_setopt(easy_, curl::kHeaderFunction, &take_field);
  easy_lib().easy_setopt(easy_, curl::kHeaderData, this);
  easy_lib().easy_setopt(easy_, curl::kProgressFunction, &look_at_stop);
  easy_lib().easy_setopt(easy_, curl::kProgressData, this);
}

FarAnswer Attempt::perform() {
  const curl::Library& curl = easy_lib();
  FarAnswer answer{.result = curl.easy_perform(easy_)};
  if (problem_) std::rethrow_exception(problem_);
  curl.easy_getinfo(easy_, curl::kResponseCode, &answer.status);
  if (answer.status != 0 && !looked_ && !range_.body) look_at_head();
  answer.words = words_.front() != '\0' ? words_.data() : curl.easy_strerror(answer.result);
  const char* to = nullptr;
  curl.easy_getinfo(easy_, curl::kRedirectUrl, &to);
  if (to != nullptr) answer.redirect = to;
  curl.easy_getinfo(easy_, curl::kRetryAfter, &answer.retry_after);
  if (range_.body) {
    range_.tag = field("etag");
    // Object storage may say that it is well, and then that its parts cannot be put together.
    const bool fault = range_.answer.find("<Error>") != std::string::npos;
    answer.complete = answer.result == curl::kOk && answer.status / 100 == 2 && !fault;
    return answer;
  }
  FarFile& file = *range_.file;
  if (range_.front && to != nullptr && url_ == file.url)
    file.sha256 = sha256_in(field("x-linked-etag"));
  const bool empty = range_.front && answer.status == 416;  // such a file has no first byte
  answer.complete = empty || (wanted_ && (whole_ ? answer.result == curl::kOk
                                                 : range_.got == static_cast<size_t>(range_.size)));
  if (!answer.complete) return answer;
  range_.bytes.resize(range_.got);
  if (file.size < 0) file.size = static_cast<int64_t>(range_.got);
  return answer;
}

}  // namespace

int64_t take_number(std::string_view& text) {
  int64_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return -1;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

FarAnswer attempt(void* easy, FarRange& range, const std::string& url, int64_t stall_seconds,
                  const std::atomic<bool>& stop) {
  if (range.front) range.got = 0;
  if (!range.front && !range.body) range.bytes.resize(static_cast<size_t>(range.size));
  easy_lib().easy_reset(easy);  // its connection stays
  Attempt now(easy, range, url, stop);
  now.configure(stall_seconds);
  return now.perform();
}

}  // namespace mxfp4
