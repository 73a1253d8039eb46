#include "formats/remote/fetcher.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <string_view>
#include <utility>

#include "formats/os/input_fault.hpp"
#include "formats/remote/curl.hpp"
#include "formats/remote/far_range.hpp"
#include "formats/remote/url.hpp"
#include "lib/core/text.hpp"
#include "lib/exec/wait.hpp"

namespace mxfp4 {
namespace {

constexpr int kMostFailures = 6;  // in a row, without a byte
constexpr int kMostRetries = 300;
constexpr int kMostRedirects = 8;
constexpr int64_t kMostWait = 600;                 // seconds that a server may ask for
constexpr size_t kWorthKeeping = size_t{1} << 20;  // bytes of a range's memory

// HF_HUB_DOWNLOAD_TIMEOUT, as the hub's own client has it; else a minute.
int64_t stall_limit() {
  constexpr int64_t kUsual = 60;
  const char* given = std::getenv("HF_HUB_DOWNLOAD_TIMEOUT");
  std::string_view text = given == nullptr ? "" : given;
  const int64_t seconds = take_number(text);
  return seconds > 0 && text.empty() ? seconds : kUsual;
}

bool is_certificate_fault(int result) {
  return result == curl::kPeerFailedVerification || result == curl::kSslCertProblem ||
         result == curl::kSslCaBadFile;
}

bool is_connection_fault(int result) {
  return result == curl::kCouldntResolveHost || result == curl::kCouldntResolveProxy ||
         result == curl::kCouldntConnect || result == curl::kSslConnectError;
}

// An error of its own for each that waits: words are added to it on its way.
[[noreturn]] void throw_again(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const InputFault& error) {
    throw InputFault(error);
  } catch (const Error& error) {
    throw Error(error);
  }
}

// Where a server points to. Nothing but the path of the file is taken along.
std::string require_safe(const std::string& from, const std::string& to) {
  const bool safe =
      to.starts_with("https://") || (to.starts_with("http://") && !from.starts_with("https://"));
  if (safe) return to;
  throw Error::input(fmt::format("a redirect to {}", in_quotes(origin_of(to))));
}

}  // namespace

Fetcher::~Fetcher() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  wanted_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

FarTicket Fetcher::ask_front(std::shared_ptr<FarFile> file, int64_t size) {
  return add({.file = std::move(file), .front = true, .size = size});
}

FarTicket Fetcher::add(FarRange range) {
  if (!range.file->mounted) static_cast<void>(curl::library());
  FarTicket ticket(new FarRange(std::move(range)), [spare = spare_](FarRange* read) {
    const std::unique_ptr<FarRange> owned(read);
    const std::scoped_lock lock(spare->mutex);
    if (read->bytes.size() >= kWorthKeeping && spare->bytes.size() < kConnections) {
      spare->bytes.push_back(std::move(read->bytes));
    }
  });
  const std::scoped_lock lock(mutex_);
  const std::scoped_lock lock_spare(spare_->mutex);
  if (ticket->size >= int64_t{kWorthKeeping} && !ticket->body && !spare_->bytes.empty()) {
    ticket->bytes = std::move(spare_->bytes.back());
    spare_->bytes.pop_back();
  }
  asked_.push_back(ticket);
  if (asked_.size() > idle_ && threads_.size() < kConnections) {
    threads_.emplace_back([this] { work(); });
  }
  wanted_.notify_all();  // one that sleeps, too
  return ticket;
}

const UninitializedBytes* Fetcher::wait_if_there(const FarTicket& range) {
  std::unique_lock lock(mutex_);
  while (!range->done) mxfp4::wait(arrived_, lock);
  if (range->absent) return nullptr;
  if (range->failure) throw_again(range->failure);
  return &range->bytes;
}

const UninitializedBytes& Fetcher::wait(const FarTicket& range) {
  const UninitializedBytes* bytes = wait_if_there(range);
  if (bytes == nullptr) throw_again(range->failure);
  return *bytes;
}

// A thread's loop.
void Fetcher::work() {
  void* easy = nullptr;
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    const auto next = [&] {
      return std::ranges::find_if(asked_, [](const FarTicket& i) { return !i->file->is_read; });
    };
    while (!stop_ && next() == asked_.end()) mxfp4::wait(wanted_, lock);
    --idle_;
    if (stop_) break;
    const auto at = next();
    const FarTicket range = std::move(*at);
    asked_.erase(at);
    range->file->is_read = range->file->mounted != nullptr;
    lock.unlock();
    try {
      if (range->file->mounted) {
        range->bytes.resize(static_cast<size_t>(range->size));
        range->file->mounted->read(range->begin, range->bytes);
      } else {
        if (easy == nullptr) easy = curl::library().easy_init();
        in_file(range->file->name, [&] { fetch(easy, *range); });
      }
    } catch (const Error& error) {
      range->failure = std::current_exception();
      if (range->body) {
        range->failure = std::make_exception_ptr(
            Error::output(error.message()).in_file(error.file()).hint(error.hint_text()));
      }
    } catch (...) {
      range->failure = std::current_exception();
    }
    lock.lock();
    range->done = true;
    arrived_.notify_all();
    if (std::exchange(range->file->is_read, false)) wanted_.notify_all();
  }
  if (easy != nullptr) curl::library().easy_cleanup(easy);
}

// Sleeps until then, and as long as a server asks to.
void Fetcher::sleep_until(Clock::time_point time) {
  std::unique_lock lock(mutex_);
  while (!stop_ && std::max(time, not_before_) > Clock::now()) {
    wanted_.wait_until(lock, std::max(time, not_before_));
  }
}

// Asks until the range is there. Throws if there is no more to do.
void Fetcher::fetch(void* easy, FarRange& range) {
  const int64_t stall_seconds = stall_limit();
  FarFile& file = *range.file;
  std::string url;  // empty: where the file was found
  int redirects = 0;
  int failures = 0;
  int retries = 0;
  for (Clock::time_point next{}; !stop_;) {
    sleep_until(next);
    if (url.empty()) {
      const std::scoped_lock lock(mutex_);
      url = file.target.empty() ? file.url : file.target;
    }
    const size_t before = range.got;
    const FarAnswer answer = attempt(easy, range, url, stall_seconds, stop_);
    if (answer.status != 0) answered_ = true;
    if (answer.complete) {
      const std::scoped_lock lock(mutex_);
      if (url != file.url) file.target = url;
      return;
    }
    if (!answer.redirect.empty()) {
      url = require_safe(url, answer.redirect);
      if (++redirects <= kMostRedirects) continue;
      throw Error::input(fmt::format("more than {} redirects", kMostRedirects));
    }
    if (range.again && answer.status == 404) return;
    const int64_t told = refuse(range, answer, url);
    range.again = range.method == "POST" || range.method == "DELETE";
    if (!range.front && range.got > before) failures = 0;
    if (told == 0) ++failures;
    if (failures == kMostFailures || ++retries == kMostRetries) {
      const std::string why = answer.status < 300
                                  ? answer.words
                                  : fmt::format("{} answers {}", origin_of(url), answer.status);
      throw Error::input(fmt::format("{}, {} times", why, std::max(failures, retries)))
          .hint("run it again later, with --resume");
    }
    constexpr int64_t kSecond = 250;  // milliseconds, twice as many each time
    next = Clock::now() + std::chrono::milliseconds(failures <= 1 ? 0 : kSecond << failures);
    url.clear();
    redirects = 0;
  }
}

// An attempt that did not bring the range: the connection broke, the server is busy, the address has
// expired, or there is no more to do, and this throws. Returns how many seconds the server asks for.
int64_t Fetcher::refuse(FarRange& range, const FarAnswer& answer, const std::string& url) {
  const FarAccess& access = *range.file->access;
  const long status = answer.status;
  if (status == 0) {
    if (is_certificate_fault(answer.result)) {
      throw Error::input(answer.words)
          .hint(
              "SSL_CERT_FILE names certificates that are trusted; Debian's are in ca-certificates");
    }
    if (!answered_ && is_connection_fault(answer.result)) throw Error::input(answer.words);
  }
  if (status < 300) return 0;
  const bool closed = status == 401 || status == 403;
  range.absent = status == 404 || status == 410 || status == 412;
  if ((closed || range.absent) && url != range.file->url) {
    const std::scoped_lock lock(mutex_);
    range.absent = false;
    range.file->target.clear();  // a content host's address is good for an hour or so
    return 0;
  }
  if (closed) {
    throw Error::input(fmt::format("the server refuses it ({})", status)).hint(access.refused);
  }
  if (range.absent) {
    throw Error::input(fmt::format("the server has no such file ({})", status))
        .hint(access.missing);
  }
  if (status == 416) throw Error::input("shorter than it should be: the server has no such range");
  if (status != 408 && status != 409 && status != 429 && status < 500) {
    throw Error::input(fmt::format("the server answers {}", status)).hint(access.missing);
  }
  if (answer.retry_after > kMostWait) {
    throw Error::input(
        fmt::format("the server answers {} and asks to wait {} s", status, answer.retry_after))
        .hint("run it again then, with --resume");
  }
  const std::scoped_lock lock(mutex_);
  not_before_ = std::max(not_before_, Clock::now() + std::chrono::seconds(answer.retry_after));
  return answer.retry_after;
}

}  // namespace mxfp4
