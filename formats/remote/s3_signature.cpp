#include "formats/remote/s3_signature.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "formats/checksum/sha256.hpp"
#include "formats/remote/url.hpp"

namespace mxfp4 {
namespace {

std::string sum_of(const std::string& text) {
  const Sha256Digest digest = sha256(std::as_bytes(std::span(text)));
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

std::string hex(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

// RFC 2104.
std::string keyed_sum(std::string key, const std::string& text) {
  constexpr size_t kBlock = 64;
  if (key.size() > kBlock) key = sum_of(key);
  key.resize(kBlock);
  std::string outer = key;
  for (char& byte : key) byte = static_cast<char>(byte ^ 0x36);
  for (char& byte : outer) byte = static_cast<char>(byte ^ 0x5c);
  return sum_of(outer + sum_of(key + text));
}

}  // namespace

std::vector<std::string> signed_fields(const S3Keys& keys, const std::string& method,
                                       const std::string& url, const std::string& time,
                                       const std::string& condition) {
  const std::string origin = origin_of(url);
  const std::string host = origin.substr(origin.find("://") + 3);
  const size_t question = std::min(url.find('?'), url.size());
  const std::string path = url.substr(origin.size(), question - origin.size());
  const std::string query = url.substr(std::min(question + 1, url.size()));
  const std::string content = method == "GET" ? hex(sum_of("")) : "UNSIGNED-PAYLOAD";
  std::vector<std::string> fields = {"x-amz-content-sha256:" + content, "x-amz-date:" + time};
  if (!condition.empty()) fields.insert(fields.begin(), condition);  // they are sorted
  if (!keys.token.empty()) fields.push_back("x-amz-security-token:" + keys.token);
  std::string request = fmt::format("{}\n{}\n{}\nhost:{}\n", method, path, query, host);
  std::string names = "host";
  for (const std::string& field : fields) {
    request += field + "\n";
    names += ";" + field.substr(0, field.find(':'));
  }
  request += fmt::format("\n{}\n{}", names, content);
  const std::string date = time.substr(0, time.find('T'));
  const std::string scope = fmt::format("{}/{}/s3/aws4_request", date, keys.region);
  std::string key = "AWS4" + keys.secret;
  for (const std::string& word :
       {date, keys.region, std::string("s3"), std::string("aws4_request")}) {
    key = keyed_sum(key, word);
  }
  const std::string text =
      fmt::format("AWS4-HMAC-SHA256\n{}\n{}\n{}", time, scope, hex(sum_of(request)));
  fields.push_back(fmt::format(
      "Authorization: AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={}, Signature={}", keys.id,
      scope, names, hex(keyed_sum(key, text))));
  return fields;
}

}  // namespace mxfp4
