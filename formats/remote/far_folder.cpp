#include "formats/remote/far_folder.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "formats/remote/url.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

constexpr std::string_view kForms = "an address is https://HOST/DIR/ or hf://ORG/MODEL[@REVISION]";

// A plain server does not list its files: those that a checkpoint begins with are asked for.
constexpr std::array<const char*, 3> kFirstFiles = {"config.json", "model.safetensors.index.json",
                                                    "model.safetensors"};

FarFolder open_plain_folder(Fetcher& fetcher, const std::string& address) {
  if (address.find_first_of("?#@") != std::string::npos) {
    throw Error::usage(address + ": an address has no ?, # or @").hint(std::string(kForms));
  }
  FarFolder folder{.address = address, .base = address + "/", .access = {}, .listed = false};
  folder.access = std::make_shared<FarAccess>(
      FarAccess{.netrc = true,
                .refused = "~/.netrc names a server's user and password, for https",
                .missing = "the address is of a directory with config.json and *.safetensors"});
  std::vector<FarTicket> first;
  first.reserve(kFirstFiles.size());
  for (const char* name : kFirstFiles) first.push_back(fetcher.ask_front(folder.file(name), 1));
  for (size_t i = 0; i < first.size(); ++i) {
    if (fetcher.wait_if_there(first[i]) != nullptr) folder.names.emplace_back(kFirstFiles[i]);
  }
  if (folder.names.empty()) static_cast<void>(fetcher.wait(first.front()));
  return folder;
}

}  // namespace

bool is_address(std::string_view text) {
  const size_t scheme = text.find("://");
  return scheme != std::string_view::npos && scheme > 0 &&
         text.substr(0, scheme).find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789+") ==
             std::string_view::npos;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::shared_ptr<FarFile> FarFolder::file(const std::string& name) const {
  return std::make_shared<FarFile>(
      FarFile{.name = address + "/" + name, .url = base + escaped(name), .access = access});
}

std::filesystem::path FarFolder::cached(const std::string& name) const {
  std::error_code ignored;
  std::filesystem::path path = cache / name;
  if (cache.empty() || !std::filesystem::is_regular_file(path, ignored)) return {};
  return path;
}

FarFolder open_far_folder(Fetcher& fetcher, const std::string& address) {
  const size_t end = address.find_last_not_of('/') + 1;
  const std::string whole = address.substr(0, end);
  const size_t scheme = whole.find("://");
  if (scheme == std::string::npos || scheme + 3 >= end) {
    throw Error::usage(address + ": names nothing").hint(std::string(kForms));
  }
  const std::string kind = whole.substr(0, scheme);
  FarFolder folder;
  if (kind == "https" || kind == "http") {
    folder = open_plain_folder(fetcher, whole);
  } else if (kind == "hf") {
    folder = open_hub_folder(fetcher, whole.substr(scheme + 3));
  } else {
    throw Error::usage(address + ": another kind of address").hint(std::string(kForms));
  }
  folder.address = whole;
  return folder;
}

}  // namespace mxfp4
