#include "formats/remote/s3_signature.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "formats/checksum/sha256.hpp"
#include "formats/remote/url.hpp"

namespace mxfp4 {
namespace {

std::string hex(const Sha256Digest& digest) {
  std::string text;
  for (const std::byte byte : digest) text += fmt::format("{:02x}", std::to_integer<int>(byte));
  return text;
}

Sha256Digest sum_of(const std::string& text) { return sha256(std::as_bytes(std::span(text))); }

// RFC 2104.
Sha256Digest keyed_sum(ConstBytes key, const std::string& text) {
  constexpr size_t kBlock = 64;
  std::array<std::byte, kBlock> inner{};
  if (key.size() > kBlock) {
    std::ranges::copy(sha256(key), inner.begin());
  } else {
    std::ranges::copy(key, inner.begin());
  }
  std::array<std::byte, kBlock> outer = inner;
  for (std::byte& byte : inner) byte ^= std::byte{0x36};
  for (std::byte& byte : outer) byte ^= std::byte{0x5c};
  const auto joined = [](ConstBytes first, ConstBytes second) {
    std::vector<std::byte> all(first.begin(), first.end());
    all.insert(all.end(), second.begin(), second.end());
    return sha256(all);
  };
  return joined(outer, joined(inner, std::as_bytes(std::span(text))));
}

}  // namespace

std::vector<std::string> signed_fields(const S3Keys& keys, const std::string& url,
                                       const std::string& time) {
  const std::string origin = origin_of(url);
  const std::string host = origin.substr(origin.find("://") + 3);
  const size_t question = std::min(url.find('?'), url.size());
  const std::string path = url.substr(origin.size(), question - origin.size());
  const std::string query = url.substr(std::min(question + 1, url.size()));
  const std::string nothing = hex(sum_of(""));
  std::vector<std::string> fields = {"x-amz-content-sha256:" + nothing, "x-amz-date:" + time};
  if (!keys.token.empty()) fields.push_back("x-amz-security-token:" + keys.token);
  std::string request = fmt::format("GET\n{}\n{}\nhost:{}\n", path, query, host);
  std::string names = "host";
  for (const std::string& field : fields) {
    request += field + "\n";
    names += ";" + field.substr(0, field.find(':'));
  }
  request += fmt::format("\n{}\n{}", names, nothing);
  const std::string date = time.substr(0, time.find('T'));
  const std::string scope = fmt::format("{}/{}/s3/aws4_request", date, keys.region);
  const std::string secret = "AWS4" + keys.secret;
  Sha256Digest key = keyed_sum(std::as_bytes(std::span(secret)), date);
  for (const std::string& word : {keys.region, std::string("s3"), std::string("aws4_request")}) {
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
