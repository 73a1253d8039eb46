#include "apps/parsers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

constexpr int64_t kMaxLayerNumber = 99999;  // five digits in a file name
constexpr int64_t kMaxShards = 100'000;
constexpr double kMostBytes = 1e18;

}  // namespace

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::set<int64_t> parse_layers(const std::string& text) {
  std::set<int64_t> layers;
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    const size_t dash = item.find('-');
    const auto first = whole_number(item.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : whole_number(item.substr(dash + 1));
    if (!first || !last || *first > *last || *last > kMaxLayerNumber) {
      throw Error::usage(fmt::format("--layers: '{}' is neither N nor FIRST-LAST", item))
          .hint("such as 0-3,7");
    }
    for (int64_t layer = *first; layer <= *last; ++layer) layers.insert(layer);
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
  }
  return layers;
}

int64_t parse_size(const std::string& text, const std::string& flag) {
  double value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  std::string unit(end, last);
  std::ranges::transform(unit, unit.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const size_t power = unit.empty() ? std::string::npos : std::string_view("kmgt").find(unit[0]);
  const std::string rest = unit.empty() ? "" : unit.substr(1);
  for (size_t i = 0; power != std::string::npos && i <= power; ++i) {
    value *= rest == "b" ? 1000 : 1024;
  }
  const bool known = power != std::string::npos && (rest.empty() || rest == "b" || rest == "ib");
  if (error != std::errc{} || !known || !(value >= 1 && value <= kMostBytes)) {
    throw Error::usage(fmt::format("'{}' is not a size such as 256MiB or 8GB", text)).at_key(flag);
  }
  return static_cast<int64_t>(value);
}

Shard parse_shard(const std::string& text) {
  const size_t slash = std::min(text.find('/'), text.size());
  const auto index = whole_number(std::string_view(text).substr(0, slash));
  const auto count = whole_number(std::string_view(text).substr(std::min(slash + 1, text.size())));
  if (index && count && *index < *count && *count <= kMaxShards) return {*index, *count};
  throw Error::usage(fmt::format(
      "--shard: '{}' is not I/N, with I from 0 to N - 1 and N at most {}", text, kMaxShards));
}

std::map<std::string, std::string> parse_pairs(const std::vector<std::string>& items,
                                               const std::string& flag) {
  std::map<std::string, std::string> pairs;
  for (const std::string& item : items) {
    const size_t equals = item.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw Error::usage(fmt::format("{}: '{}' is not NAME=VALUE", flag, item));
    }
    const auto [pair, fresh] = pairs.emplace(item.substr(0, equals), item.substr(equals + 1));
    if (!fresh && pair->second != item.substr(equals + 1)) {
      throw Error::usage(fmt::format("{}: {} is given as '{}' and as '{}'", flag, pair->first,
                                     pair->second, item.substr(equals + 1)));
    }
  }
  return pairs;
}

}  // namespace mxfp4
