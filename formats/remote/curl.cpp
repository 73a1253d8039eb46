#include "formats/remote/curl.hpp"

#include <dlfcn.h>

#include <array>

#include "lib/core/error.hpp"

namespace mxfp4::curl {
namespace {

// Debian's builds against OpenSSL and against GnuTLS have one interface.
constexpr std::array kLibraryNames = {"libcurl.so.4", "libcurl-gnutls.so.4"};

template <class Function>
void take_function(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(handle, name));
  if (function != nullptr) return;
  throw Error::input(std::string("libcurl is too old: it has no ") + name)
      .hint("7.68 or later is needed");
}

Library open_library() {
  void* handle = nullptr;
  for (const char* name : kLibraryNames) {
    if (handle == nullptr) handle = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  if (handle == nullptr) {
    throw Error::input("libcurl is not installed, which fetches files from other machines")
        .hint("apt-get install libcurl4 ca-certificates, or download the files");
  }
  Library curl{};
  take_function(handle, "curl_global_init", curl.global_init);
  take_function(handle, "curl_easy_init", curl.easy_init);
  take_function(handle, "curl_easy_setopt", curl.easy_setopt);
  take_function(handle, "curl_easy_getinfo", curl.easy_getinfo);
  take_function(handle, "curl_easy_perform", curl.easy_perform);
  take_function(handle, "curl_easy_reset", curl.easy_reset);
  take_function(handle, "curl_easy_cleanup", curl.easy_cleanup);
  take_function(handle, "curl_easy_strerror", curl.easy_strerror);
  take_function(handle, "curl_slist_append", curl.slist_append);
  take_function(handle, "curl_slist_free_all", curl.slist_free_all);
  if (curl.global_init(kGlobalAll) != kOk) throw Error::input("libcurl does not start");
  return curl;
}

}  // namespace

const Library& library() {
  static const Library kLibrary = open_library();
  return kLibrary;
}

}  // namespace mxfp4::curl
