// libcurl, opened when the first far file is asked for: nobody needs it for files on a disk, and the
// system's own knows its proxies and certificates. The numbers are libcurl's binary interface, which
// its authors never change; tests/unit/remote_test.cpp compares them with the header.
#pragma once

#include <cstddef>

namespace mxfp4::curl {

// Options of a transfer. libcurl's names without CURLOPT_.
enum Option : int {
  kLowSpeedLimit = 19,
  kLowSpeedTime = 20,
  kNoProgress = 43,
  kUpload = 46,
  kNetrc = 51,
  kConnectTimeout = 78,
  kHttpVersion = 84,
  kBufferSize = 98,
  kNoSignal = 99,
  kHttpAuth = 107,
  kPathAsIs = 234,
  kWriteData = 10001,
  kUrl = 10002,
  kRange = 10007,
  kReadData = 10009,
  kErrorBuffer = 10010,
  kUserAgent = 10018,
  kHttpHeader = 10023,
  kHeaderData = 10029,
  kCustomRequest = 10036,
  kProgressData = 10057,
  kCaInfo = 10065,
  kCaPath = 10097,
  kNoProxy = 10177,
  kBearer = 10220,
  kWriteFunction = 20011,
  kReadFunction = 20012,
  kHeaderFunction = 20079,
  kProgressFunction = 20219,
  kInFileSizeLarge = 30115,
};
enum Info : int { kResponseCode = 0x200002, kRedirectUrl = 0x10001f, kRetryAfter = 0x600039 };
// Results of a transfer.
enum Code : int {
  kOk = 0,
  kCouldntResolveProxy = 5,
  kCouldntResolveHost = 6,
  kCouldntConnect = 7,
  kOperationTimedOut = 28,
  kSslConnectError = 35,
  kUnknownOption = 48,
  kSslCertProblem = 58,
  kPeerFailedVerification = 60,
  kSslCaBadFile = 77,
};
inline constexpr long kHttp11 = 2;                // CURL_HTTP_VERSION_1_1
inline constexpr long kNetrcOptional = 1;         // CURL_NETRC_OPTIONAL
inline constexpr long kAuthBearer = 64;           // CURLAUTH_BEARER
inline constexpr size_t kErrorBytes = 256;        // CURL_ERROR_SIZE
inline constexpr long kGlobalAll = 3;             // CURL_GLOBAL_ALL
inline constexpr size_t kReadAbort = 0x10000000;  // CURL_READFUNC_ABORT

// The functions, by libcurl's names without curl_.
struct Library {
  int (*global_init)(long);
  void* (*easy_init)();
  int (*easy_setopt)(void*, int, ...);
  int (*easy_getinfo)(void*, int, ...);
  int (*easy_perform)(void*);
  void (*easy_reset)(void*);
  void (*easy_cleanup)(void*);
  const char* (*easy_strerror)(int);
  void* (*slist_append)(void*, const char*);
  void (*slist_free_all)(void*);
};

// The system's libcurl, 7.68 or later. Throws Error::input with a hint if there is none.
[[nodiscard]] const Library& library();

}  // namespace mxfp4::curl
