// Stands in for libcurl and libcrypto in the wheel. Debian's static libhdf5 holds a driver for
// files on S3, which this program never opens; with the real libraries the wheel would carry thirty
// more, krb5 and LDAP among them. Each function says that it failed.
#include <cstddef>

// The libraries gave the names.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" {

int curl_global_init(long /*flags*/) { return 2; }  // CURLE_FAILED_INIT
void curl_global_cleanup() {}
void* curl_easy_init() { return nullptr; }
int curl_easy_setopt(void* /*handle*/, int /*option*/, ...) { return 2; }
int curl_easy_perform(void* /*handle*/) { return 2; }
void curl_easy_cleanup(void* /*handle*/) {}
void* curl_slist_append(void* /*list*/, const char* /*text*/) { return nullptr; }
void curl_slist_free_all(void* /*list*/) {}

unsigned char* SHA256(const unsigned char* /*data*/, size_t /*size*/, unsigned char* /*digest*/) {
  return nullptr;
}
const void* EVP_sha256() { return nullptr; }
unsigned char* HMAC(const void* /*digest*/, const void* /*key*/, int /*key_size*/,
                    const unsigned char* /*data*/, size_t /*size*/, unsigned char* /*out*/,
                    unsigned int* /*out_size*/) {
  return nullptr;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
