#include "apps/parsers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <limits>

#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

constexpr int64_t kMaxLayerNumber = 99999;  // five digits in a file name

struct SizeUnit {
  std::string_view name;  // lower case; a longer name comes before its end
  int64_t bytes;
};
constexpr std::array kSizeUnits = {
    SizeUnit{"kib", int64_t{1} << 10},
    SizeUnit{"mib", int64_t{1} << 20},
    SizeUnit{"gib", int64_t{1} << 30},
    SizeUnit{"tib", int64_t{1} << 40},
    SizeUnit{"kb", 1'000},
    SizeUnit{"mb", 1'000'000},
    SizeUnit{"gb", 1'000'000'000},
    SizeUnit{"tb", 1'000'000'000'000},
    SizeUnit{"k", int64_t{1} << 10},
    SizeUnit{"m", int64_t{1} << 20},
    SizeUnit{"g", int64_t{1} << 30},
    SizeUnit{"t", int64_t{1} << 40},
    SizeUnit{"b", 1},
};

// digits / scale
struct Decimal {
  int64_t digits = 0;
  int64_t scale = 1;
};

// "12", "0.5", ".25"; nullopt for other texts, and for more than three digits behind the point.
std::optional<Decimal> decimal(std::string_view text) {
  const size_t point = text.find('.');
  const std::string_view behind = point == std::string_view::npos ? "" : text.substr(point + 1);
  if (behind.size() > 3 || (point != std::string_view::npos && behind.empty())) return std::nullopt;
  const std::optional<int64_t> digits =
      whole_number(std::string(text.substr(0, point)).append(behind));
  if (!digits) return std::nullopt;
  Decimal value{.digits = *digits};
  for (size_t i = 0; i < behind.size(); ++i) value.scale *= 10;
  return value;
}

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
  std::string number = text;
  std::ranges::transform(number, number.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  int64_t unit = 1;
  for (const SizeUnit& candidate : kSizeUnits) {
    if (!number.ends_with(candidate.name)) continue;
    number.resize(number.size() - candidate.name.size());
    unit = candidate.bytes;
    break;
  }
  const std::optional<Decimal> value = decimal(number);
  if (!value || value->digits == 0 || (unit == 1 && value->scale > 1)) {
    throw Error::usage(fmt::format("'{}' is not a size such as 256MiB", text))
        .at_key(flag)
        .hint("units: KiB, MiB, GiB, TiB (also K, M, G, T) and KB, MB, GB, TB; 0.5GiB and 8GB do");
  }
  if (value->digits > std::numeric_limits<int64_t>::max() / unit) {
    throw Error::usage(fmt::format("{} does not fit into 64 bits", text)).at_key(flag);
  }
  const int64_t bytes = value->digits * unit / value->scale;
  if (bytes == 0) throw Error::usage(fmt::format("{} is less than a byte", text)).at_key(flag);
  return bytes;
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
