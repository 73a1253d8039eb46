// A prefix of a bucket, as Amazon's own clients find it: keys, region and endpoint come from the same
// variables and files.
#include <fmt/format.h>

#include <map>
#include <utility>

#include "formats/remote/far_folder.hpp"
#include "formats/remote/url.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

// The entries of a profile in one of the user's files, "[NAME]" and lines "KEY = VALUE".
std::map<std::string, std::string> profile_in(const char* where, const char* usual,
                                              bool with_word) {
  const std::string given = variable(where);
  const std::string text =
      user_text(given.empty() ? fs::path(variable("HOME")) / ".aws" / usual : fs::path(given));
  std::string wanted = variable("AWS_PROFILE");
  if (wanted.empty()) wanted = "default";
  const std::string head = "[" + wanted + "]";
  const std::string other_head = with_word ? "[profile " + wanted + "]" : head;
  std::map<std::string, std::string> entries;
  bool here = false;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = trimmed(text.substr(begin, end - begin));
    begin = end + 1;
    if (line.starts_with('[')) here = line == head || line == other_head;
    const size_t equal = line.find('=');
    if (!here || equal == std::string::npos) continue;
    entries[trimmed(line.substr(0, equal))] = trimmed(line.substr(equal + 1));
  }
  return entries;
}

S3Keys find_keys() {
  S3Keys keys{variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY"),
              variable("AWS_SESSION_TOKEN"), variable("AWS_REGION")};
  if (keys.id.empty() || keys.secret.empty()) {
    auto stored = profile_in("AWS_SHARED_CREDENTIALS_FILE", "credentials", false);
    keys.id = stored["aws_access_key_id"];
    keys.secret = stored["aws_secret_access_key"];
    keys.token = stored["aws_session_token"];
  }
  if (keys.region.empty()) keys.region = variable("AWS_DEFAULT_REGION");
  if (keys.region.empty()) keys.region = profile_in("AWS_CONFIG_FILE", "config", true)["region"];
  if (keys.region.empty()) keys.region = "us-east-1";
  return keys;
}

// The text of the next <TAG> in an answer from `at` on, which goes on behind it. Empty at the end.
std::string take_tag(const std::string& xml, const std::string& tag, size_t& at) {
  const size_t begin = xml.find("<" + tag + ">", at);
  const size_t end = begin == std::string::npos ? begin : xml.find("</" + tag + ">", begin);
  at = end;
  if (end == std::string::npos) return "";
  std::string text = xml.substr(begin + tag.size() + 2, end - begin - tag.size() - 2);
  constexpr std::pair<std::string_view, const char*> kNamed[] = {
      {"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&apos;", "'"}, {"&amp;", "&"}};
  for (const auto& [name, meant] : kNamed) {
    for (size_t i = text.find(name); i != std::string::npos; i = text.find(name, i + 1)) {
      text.replace(i, name.size(), meant);
    }
  }
  return text;
}

}  // namespace

FarFolder open_s3_folder(Fetcher& fetcher, std::string_view place) {
  const std::string bucket(place.substr(0, place.find('/')));
  const std::string prefix =
      bucket.size() == place.size() ? "" : std::string(place.substr(bucket.size() + 1)) + "/";
  const S3Keys keys = find_keys();
  std::string endpoint = variable("AWS_ENDPOINT_URL_S3");
  if (endpoint.empty()) endpoint = variable("AWS_ENDPOINT_URL");
  while (endpoint.ends_with('/')) endpoint.pop_back();
  const bool anonymous = keys.id.empty();
  FarAccess access{
      .s3 = keys,
      .refused = anonymous ? "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set, and "
                             "~/.aws/credentials has no such profile"
                           : "the keys of AWS_ACCESS_KEY_ID or ~/.aws/credentials may not do it",
      .missing =
          fmt::format("is there a bucket {} in region {} (AWS_REGION)?", bucket, keys.region)};
  // A certificate for *.s3.REGION.amazonaws.com is none for a bucket with a dot.
  const std::string host = fmt::format("s3.{}.amazonaws.com", keys.region);
  std::string base = endpoint + "/" + bucket + "/";
  if (endpoint.empty() && bucket.find('.') != std::string::npos) {
    base = fmt::format("https://{}/{}/", host, bucket);
  } else if (endpoint.empty()) {
    base = fmt::format("https://{}.{}/", bucket, host);
  }
  FarFolder folder{.base = base + escaped(prefix, "/"),
                   .access = std::make_shared<FarAccess>(std::move(access))};
  std::string next;
  do {
    std::string query = next.empty() ? "" : "continuation-token=" + escaped(next) + "&";
    query += "list-type=2&prefix=" + escaped(prefix);
    const std::string xml = fetch_text(fetcher, {.name = fmt::format("s3://{}", place),
                                                 .url = base + "?" + query,
                                                 .access = folder.access});
    size_t at = 0;
    while (true) {
      const std::string key = take_tag(xml, "Key", at);
      if (at == std::string::npos) break;
      if (key.size() > prefix.size() && key.starts_with(prefix) && !key.ends_with('/')) {
        folder.names.push_back(key.substr(prefix.size()));
      }
    }
    at = 0;
    next = take_tag(xml, "NextContinuationToken", at);
  } while (!next.empty());
  return folder;
}

}  // namespace mxfp4
