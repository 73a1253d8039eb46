// formats/remote: libcurl's numbers are those of its header, and who may see a secret. What arrives
// from servers is tested by cli.far_hub and cli.far_nginx.
#include <gtest/gtest.h>
#if __has_include(<curl/curl.h>)  // not for another architecture
#include <curl/curl.h>
#endif

#include "formats/os/file.hpp"
#include "formats/remote/curl.hpp"
#include "formats/remote/far_folder.hpp"
#include "formats/remote/s3_signature.hpp"
#include "formats/remote/url.hpp"

namespace mxfp4 {
namespace {

#ifdef LIBCURL_VERSION
static_assert(int{curl::kLowSpeedLimit} == CURLOPT_LOW_SPEED_LIMIT);
static_assert(int{curl::kLowSpeedTime} == CURLOPT_LOW_SPEED_TIME);
static_assert(int{curl::kNoProgress} == CURLOPT_NOPROGRESS);
static_assert(int{curl::kUpload} == CURLOPT_UPLOAD);
static_assert(int{curl::kReadData} == CURLOPT_READDATA);
static_assert(int{curl::kCustomRequest} == CURLOPT_CUSTOMREQUEST);
static_assert(int{curl::kReadFunction} == CURLOPT_READFUNCTION);
static_assert(int{curl::kInFileSizeLarge} == CURLOPT_INFILESIZE_LARGE);
static_assert(int{curl::kNetrc} == CURLOPT_NETRC);
static_assert(int{curl::kConnectTimeout} == CURLOPT_CONNECTTIMEOUT);
static_assert(int{curl::kHttpVersion} == CURLOPT_HTTP_VERSION);
static_assert(int{curl::kBufferSize} == CURLOPT_BUFFERSIZE);
static_assert(int{curl::kNoSignal} == CURLOPT_NOSIGNAL);
static_assert(int{curl::kHttpAuth} == CURLOPT_HTTPAUTH);
static_assert(int{curl::kPathAsIs} == CURLOPT_PATH_AS_IS);
static_assert(int{curl::kWriteData} == CURLOPT_WRITEDATA);
static_assert(int{curl::kUrl} == CURLOPT_URL);
static_assert(int{curl::kRange} == CURLOPT_RANGE);
static_assert(int{curl::kErrorBuffer} == CURLOPT_ERRORBUFFER);
static_assert(int{curl::kUserAgent} == CURLOPT_USERAGENT);
static_assert(int{curl::kHttpHeader} == CURLOPT_HTTPHEADER);
static_assert(int{curl::kHeaderData} == CURLOPT_HEADERDATA);
static_assert(int{curl::kCaInfo} == CURLOPT_CAINFO);
static_assert(int{curl::kCaPath} == CURLOPT_CAPATH);
static_assert(int{curl::kNoProxy} == CURLOPT_NOPROXY);
static_assert(int{curl::kBearer} == CURLOPT_XOAUTH2_BEARER);
static_assert(int{curl::kWriteFunction} == CURLOPT_WRITEFUNCTION);
static_assert(int{curl::kHeaderFunction} == CURLOPT_HEADERFUNCTION);
static_assert(int{curl::kProgressFunction} == CURLOPT_XFERINFOFUNCTION);
static_assert(int{curl::kProgressData} == CURLOPT_XFERINFODATA);
static_assert(int{curl::kResponseCode} == CURLINFO_RESPONSE_CODE);
static_assert(int{curl::kRedirectUrl} == CURLINFO_REDIRECT_URL);
static_assert(int{curl::kRetryAfter} == CURLINFO_RETRY_AFTER);
static_assert(int{curl::kOk} == CURLE_OK);
static_assert(int{curl::kCouldntResolveProxy} == CURLE_COULDNT_RESOLVE_PROXY);
static_assert(int{curl::kCouldntResolveHost} == CURLE_COULDNT_RESOLVE_HOST);
static_assert(int{curl::kCouldntConnect} == CURLE_COULDNT_CONNECT);
static_assert(int{curl::kSslConnectError} == CURLE_SSL_CONNECT_ERROR);
static_assert(int{curl::kSslCertProblem} == CURLE_SSL_CERTPROBLEM);
static_assert(int{curl::kPeerFailedVerification} == CURLE_PEER_FAILED_VERIFICATION);
static_assert(int{curl::kSslCaBadFile} == CURLE_SSL_CACERT_BADFILE);
static_assert(curl::kHttp11 == CURL_HTTP_VERSION_1_1);
static_assert(curl::kNetrcOptional == CURL_NETRC_OPTIONAL);
static_assert(curl::kAuthBearer == CURLAUTH_BEARER);
static_assert(curl::kErrorBytes == CURL_ERROR_SIZE);
static_assert(curl::kGlobalAll == CURL_GLOBAL_ALL);
static_assert(curl::kReadAbort == CURL_READFUNC_ABORT);
#endif

TEST(RemoteUrl, Origin) {
  EXPECT_EQ(origin_of("https://Host.org:443/a/b"), "https://host.org:443");
  EXPECT_EQ(origin_of("https://host.org?a=/b"), "https://host.org");
  EXPECT_NE(origin_of("https://host.org@evil.org/"), origin_of("https://host.org/"));
  EXPECT_NE(origin_of("https://host.org.evil.org/"), origin_of("https://host.org/"));
  EXPECT_NE(origin_of("http://host.org/"), origin_of("https://host.org/"));
  EXPECT_NE(origin_of("https://host.org:444/"), origin_of("https://host.org/"));
}

TEST(RemoteUrl, PrivateIsHttpsOrThisMachine) {
  for (const char* url : {"https://host.org/", "http://127.0.0.1:80/", "http://localhost/",
                          "http://[::1]:8080/x", "HTTPS://HOST/"}) {
    EXPECT_TRUE(is_private(url)) << url;
  }
  for (const char* url : {"http://host.org/", "http://127.0.0.1.evil.org/", "http://10.0.0.1/",
                          "http://localhost@evil.org/", "http://[::2]/", "ftp://localhost/"}) {
    EXPECT_FALSE(is_private(url)) << url;
  }
}

TEST(RemoteUrl, Addresses) {
  EXPECT_TRUE(is_address("hf://org/model"));
  EXPECT_TRUE(is_address("s3://bucket"));
  EXPECT_FALSE(is_address("dir/hf://x"));
  EXPECT_FALSE(is_address("/models/gpt-oss"));
  EXPECT_EQ(escaped("a b/c%", "/"), "a%20b/c%25");
  for (const char* root : {"hf://org/model", "hf://org/model@refs/pr/1", "hf://org/model@v1"}) {
    EXPECT_EQ(root_of(root), root);
    EXPECT_EQ(root_of(root + std::string("/folder/file")), root);
  }
  EXPECT_EQ(root_of("s3://bucket/folder"), "s3://bucket/folder");
}

// Amazon's example of a listing (API reference of S3, signature version 4, header-based).
TEST(RemoteS3, Signature) {
  const S3Keys keys{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "",
                    "us-east-1"};
  const std::string url = "https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J";
  EXPECT_TRUE(signed_fields(keys, "GET", url, "20130524T000000Z")
                  .back()
                  .ends_with("SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature="
                             "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"));
}

}  // namespace
}  // namespace mxfp4
