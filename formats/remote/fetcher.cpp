#include "formats/remote/fetcher.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "formats/remote/curl.hpp"
#include "formats/remote/far_range.hpp"
#include "formats/remote/url.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {
namespace {

const curl::Library& lib() { return curl::library(); }

constexpr int kMostFailures = 6;  // in a row, without a byte
constexpr int kMostRetries = 300;
constexpr int kMostRedirects = 8;
constexpr int64_t kMostWait = 600;  // seconds that a server may ask for

// HF_HUB_DOWNLOAD_TIMEOUT, as the hub's own client has it; else a minute.
int64_t stall_limit() {
  constexpr int64_t kUsual = 60;
  const char* given = std::getenv("HF_HUB_DOWNLOAD_TIMEOUT");
  std::string_view text = given == nullptr ? "" : given;
  const int64_t seconds = take_number(text);
  return seconds > 0 && text.empty() ? seconds : kUsual;
}

// The SHA-256 that a hub gives with its redirect to a large file.
void learn_sha256(FarRange& range) {
  constexpr size_t kDigits = 64;
  std::string tag = range.field("x-linked-etag");
  std::erase(tag, '"');
  const bool digits = tag.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (tag.size() == kDigits && digits) range.file->sha256 = tag;
}

bool is_certificate_fault(int result) {
  return result == curl::kPeerFailedVerification || result == curl::kSslCertProblem ||
         result == curl::kSslCaBadFile;
}

bool is_connection_fault(int result) {
  return result == curl::kCouldntResolveHost || result == curl::kCouldntResolveProxy ||
         result == curl::kCouldntConnect || result == curl::kSslConnectError;
}

// Ends an attempt.
void release(void* multi, FarRange& range) {
  lib().multi_remove_handle(multi, range.easy);
  lib().easy_cleanup(std::exchange(range.easy, nullptr));
  lib().slist_free_all(std::exchange(range.headers, nullptr));
}

}  // namespace

Fetcher::Fetcher() : multi_(lib().multi_init()), stall_seconds_(stall_limit()) {
  lib().multi_setopt(multi_, curl::kMaxConnects, static_cast<long>(2 * kConnections));
  thread_ = std::thread([this] { run(); });
}

Fetcher::~Fetcher() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  lib().multi_wakeup(multi_);
  thread_.join();
  lib().multi_cleanup(multi_);
}

FarTicket Fetcher::ask(std::shared_ptr<FarFile> file, int64_t begin, int64_t size) {
  return add(std::move(file), false, begin, size);
}

FarTicket Fetcher::ask_front(std::shared_ptr<FarFile> file, int64_t size) {
  return add(std::move(file), true, 0, size);
}

FarTicket Fetcher::add(std::shared_ptr<FarFile> file, bool front, int64_t begin, int64_t size) {
  auto range = std::make_shared<FarRange>();
  range->file = std::move(file);
  range->front = front;
  range->begin = begin;
  range->size = size;
  {
    const std::scoped_lock lock(mutex_);
    asked_.push_back(range);
  }
  lib().multi_wakeup(multi_);
  return range;
}

const UninitializedBytes* Fetcher::wait_if_there(const FarTicket& range) {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [&] { return range->done; });
  if (range->absent) return nullptr;
  if (range->error) throw Error(*range->error);
  return &range->bytes;
}

const UninitializedBytes& Fetcher::wait(const FarTicket& range) {
  const UninitializedBytes* bytes = wait_if_there(range);
  if (bytes == nullptr) throw Error(*range->error);
  return *bytes;
}

// The thread's loop: takes what was asked for, starts what may start, lets libcurl work.
void Fetcher::run() {
  while (true) {
    {
      const std::scoped_lock lock(mutex_);
      if (stop_) break;
      for (FarTicket& range : asked_) waiting_.push_back(std::move(range));
      asked_.clear();
    }
    const int wait_ms = start_waiting();
    int running = 0;
    lib().multi_perform(multi_, &running);
    const bool ended = take_messages();  // then others may start
    if (!ended) lib().multi_poll(multi_, nullptr, 0, wait_ms, nullptr);
  }
  for (const FarTicket& range : active_) release(multi_, *range);
}

// Starts the ranges whose time has come, and returns after how many milliseconds to look again.
int Fetcher::start_waiting() {
  int wait_ms = 1000;
  const auto now = Clock::now();
  for (auto at = waiting_.begin(); at != waiting_.end() && active_.size() < kConnections;) {
    const auto from = std::max((*at)->not_before, not_before_);
    if (from > now) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(from - now);
      wait_ms = static_cast<int>(std::min<int64_t>(wait_ms, left.count() + 1));
      ++at;
      continue;
    }
    const FarTicket range = *at;
    at = waiting_.erase(at);
    start(range);
  }
  return wait_ms;
}

// Begins an attempt.
void Fetcher::start(const FarTicket& ticket) {
  FarRange& range = *ticket;
  const FarFile& file = *range.file;
  if (range.url.empty()) range.url = file.target.empty() ? file.url : file.target;
  range.fields.clear();
  range.looked = range.wanted = false;
  range.other = 0;
  range.words.front() = '\0';
  if (range.front) range.got = 0;
  if (!range.front) range.bytes.resize(static_cast<size_t>(range.size));
  range.before = range.got;
  range.easy = lib().easy_init();
  try {
    configure_attempt(range, stall_seconds_);
  } catch (const Error& error) {
    range.error = error;
    release(multi_, range);
    finish(range);
    return;
  }
  active_.push_back(ticket);
  lib().multi_add_handle(multi_, range.easy);
}

// Whether an attempt ended.
bool Fetcher::take_messages() {
  bool ended = false;
  int left = 0;
  while (const curl::Message* message = lib().multi_info_read(multi_, &left)) {
    if (message->kind != curl::kMessageDone) continue;
    ended = true;
    const int result = message->data.result;  // the message goes with its handle
    const auto at = std::ranges::find_if(
        active_, [&](const FarTicket& range) { return range->easy == message->easy; });
    const FarTicket range = *at;
    active_.erase(at);
    try {
      if (range->problem) throw Error(*range->problem);
      judge(*range, result);
    } catch (const Error& error) {
      range->error = error;
    }
    release(multi_, *range);
    if (range->error || range->complete) {
      finish(*range);
    } else {
      waiting_.push_front(range);
    }
  }
  return ended;
}

// What an attempt came to. Leaves the range complete, or ready for another attempt. Throws if there
// is none.
void Fetcher::judge(FarRange& range, int result) {
  long status = 0;
  lib().easy_getinfo(range.easy, curl::kResponseCode, &status);
  const std::string words =
      range.words.front() != '\0' ? std::string(range.words.data()) : lib().easy_strerror(result);
  if (status == 0) {
    if (is_certificate_fault(result)) {
      throw Error::input(words).hint(
          "SSL_CERT_FILE names certificates that are trusted; Debian's are in ca-certificates");
    }
    if (!answered_ && is_connection_fault(result)) throw Error::input(words);
    return retry(range, words);
  }
  answered_ = true;
  if (!range.looked) look_at_head(range);
  if (range.wanted) {
    const bool complete =
        range.whole ? result == curl::kOk : range.got == static_cast<size_t>(range.size);
    if (!complete) return retry(range, words);
    range.bytes.resize(range.got);
    if (range.url != range.file->url) range.file->target = range.url;
    if (range.file->size < 0) range.file->size = static_cast<int64_t>(range.got);
    range.complete = true;
    return;
  }
  if (status >= 300 && status < 400 && status != 304) return follow(range);
  refuse(range, status);
}

// Goes where the server points to. Nothing but the path of the file is taken along.
void Fetcher::follow(FarRange& range) {
  const char* to = nullptr;
  lib().easy_getinfo(range.easy, curl::kRedirectUrl, &to);
  if (to == nullptr) throw Error::input("a redirect to nowhere").hint(range.file->access->missing);
  const std::string next = to;
  if (range.url == range.file->url) learn_sha256(range);
  if (++range.redirects > kMostRedirects) {
    throw Error::input(fmt::format("more than {} redirects", kMostRedirects));
  }
  const bool safe = next.starts_with("https://") ||
                    (next.starts_with("http://") && !range.url.starts_with("https://"));
  if (!safe) {
    throw Error::input(fmt::format("a redirect to {}", in_quotes(origin_of(next))));
  }
  range.url = next;
}

// An answer that is not the file: the server is busy, the address has expired, or there is no more
// to do.
void Fetcher::refuse(FarRange& range, long status) {
  const FarAccess& access = *range.file->access;
  const bool closed = status == 401 || status == 403;
  const bool missing = status == 404 || status == 410;
  if ((closed || missing) && range.url != range.file->url) {
    range.file->target.clear();  // a content host's address is good for an hour or so
    return retry(range, fmt::format("{} answers {}", origin_of(range.url), status));
  }
  if (closed) {
    throw Error::input(fmt::format("the server refuses it ({})", status)).hint(access.refused);
  }
  if (missing) {
    range.absent = true;
    throw Error::input(fmt::format("the server has no such file ({})", status))
        .hint(access.missing);
  }
  if (status == 416 && range.front) {  // an empty file has no first byte
    range.file->size = 0;
    range.complete = true;
    return;
  }
  if (status == 416) throw Error::input("shorter than it should be: the server has no such range");
  if (status != 408 && status != 429 && status < 500) {
    throw Error::input(fmt::format("the server answers {}", status));
  }
  int64_t seconds = 0;
  lib().easy_getinfo(range.easy, curl::kRetryAfter, &seconds);
  if (seconds > kMostWait) {
    throw Error::input(fmt::format("the server answers {} and asks to wait {} s", status, seconds))
        .hint("run it again then, with --resume");
  }
  not_before_ = std::max(not_before_, Clock::now() + std::chrono::seconds(seconds));
  retry(range, fmt::format("the server answers {}", status), seconds > 0);
}

// Readies the next attempt, later with each failure in a row. `told`: the server says when.
void Fetcher::retry(FarRange& range, const std::string& why, bool told) {
  range.url.clear();
  range.redirects = 0;
  if (range.got > range.before && !range.front) range.failures = 0;
  if (!told) ++range.failures;
  if (range.failures == kMostFailures || ++range.retries == kMostRetries) {
    throw Error::input(fmt::format("{}, {} times", why, std::max(range.failures, range.retries)))
        .hint("run it again later, with --resume");
  }
  constexpr int64_t kSecond = 250;  // milliseconds, twice as many each time
  const int64_t wait = range.failures <= 1 ? 0 : kSecond << range.failures;
  range.not_before = Clock::now() + std::chrono::milliseconds(wait);
}

// Hands the range over to who waits for it.
void Fetcher::finish(FarRange& range) {
  if (range.error) range.error->in_file(range.file->name);
  {
    const std::scoped_lock lock(mutex_);
    range.done = true;
  }
  arrived_.notify_all();
}

}  // namespace mxfp4
