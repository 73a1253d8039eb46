#include "formats/remote/far_folder.hpp"

#include <cstdlib>
#include <utility>

#include "formats/os/file.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

constexpr const char* kForms =
    "an address is https://HOST/DIR/, hf://ORG/MODEL[@REVISION] or s3://BUCKET/PREFIX";

FarFolder open_plain_folder(const std::string& root) {
  if (root.find_first_of("?#@") != std::string::npos) {
    throw Error::usage(root + ": an address has no ?, # or @").hint(kForms);
  }
  FarFolder folder{.base = root + "/", .access = {}, .listed = false};
  folder.access = std::make_shared<FarAccess>(
      FarAccess{.netrc = true,
                .refused = "~/.netrc names a server's user and password, for https",
                .missing = "the address is of a directory with config.json and *.safetensors, or "
                           "of a blob's"});
  return folder;
}

}  // namespace

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string fetch_text(Fetcher& fetcher, FarFile file) {
  constexpr int64_t kMost = int64_t{16} << 20;
  const auto asked = std::make_shared<FarFile>(std::move(file));
  const FarTicket front = fetcher.ask_front(asked, kMost);
  const UninitializedBytes& text = fetcher.wait(front);
  if (asked->size > kMost) throw Error::input("too long").in_file(asked->name);
  return {reinterpret_cast<const char*>(text.data()), text.size()};
}

std::string user_text(const std::filesystem::path& path) {
  constexpr int64_t kMost = int64_t{64} << 10;
  try {
    return read_text_file(path, kMost);
  } catch (const Error&) {
    return "";
  }
}

std::string root_of(const std::string& address) {
  if (!address.starts_with("hf://")) return address;
  // A revision may have two slashes: "refs/pr/1".
  size_t end = address.find('/', address.find('/', 5) + 1);
  const size_t at = address.find('@');
  if (at < end && (address.substr(at + 1).starts_with("refs/pr/") ||
                   address.substr(at + 1).starts_with("refs/convert/"))) {
    end = address.find('/', address.find('/', end + 1) + 1);
  }
  return address.substr(0, end);
}

FarFolder open_far_folder(Fetcher& fetcher, const std::string& root) {
  const size_t scheme = root.find("://");
  const std::string kind = root.substr(0, scheme);
  const std::string_view place = std::string_view(root).substr(scheme + 3);
  if (place.empty()) throw Error::usage(root + ": names nothing").hint(kForms);
  if (kind == "https" || kind == "http") return open_plain_folder(root);
  if (kind == "hf") return open_hub_folder(fetcher, place);
  if (kind == "s3") return open_s3_folder(fetcher, place);
  throw Error::usage(root + ": another kind of address").hint(kForms);
}

}  // namespace mxfp4
