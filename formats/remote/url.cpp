#include "formats/remote/url.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lib/core/text.hpp"

namespace mxfp4 {

std::string origin_of(std::string_view url) {
  const size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return std::string(url);
  std::string origin(url.substr(0, url.find_first_of("/?#\\", scheme + 3)));
  std::ranges::transform(origin, origin.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c + ('a' - 'A')) : c; });
  return origin;
}

bool is_private(std::string_view url) {
  constexpr std::string_view kHttp = "http://";
  const std::string origin = origin_of(url);
  if (origin.starts_with("https://")) return true;
  if (!origin.starts_with(kHttp)) return false;
  std::string_view host = std::string_view(origin).substr(kHttp.size());
  if (host.starts_with('[')) return host.substr(0, host.find(']')) == "[::1";
  host = host.substr(0, host.find(':'));
  const bool number = host.find_first_not_of("0123456789.") == std::string_view::npos;
  return host == "localhost" || (number && host.starts_with("127."));
}

std::string trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(kBlank) - begin + 1));
}

std::string sha256_in(std::string text) {
  constexpr size_t kDigits = 64;
  std::erase(text, '"');
  const bool digits = text.find_first_not_of("0123456789abcdef") == std::string::npos;
  return text.size() == kDigits && digits ? text : "";
}

std::string escaped(std::string_view text, std::string_view kept) {
  std::string out;
  for (const char c : text) {
    const bool plain = is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       std::string_view("-._~").find(c) != std::string_view::npos;
    if (plain || kept.find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

}  // namespace mxfp4
