// Words of a command line as numbers and pairs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/plan/shard.hpp"

namespace mxfp4 {

// The number, 0 or more, that the whole text is; nullopt for any other text.
[[nodiscard]] std::optional<int64_t> whole_number(std::string_view text);
// "0-3,7" -> {0, 1, 2, 3, 7}; empty text: empty set, meaning all. Throws Error::usage.
[[nodiscard]] std::set<int64_t> parse_layers(const std::string& text);
// "256MiB", "8GB", "0.5g" -> bytes; K, M, G and T alone are powers of 1024. Throws Error::usage naming the
// flag.
[[nodiscard]] int64_t parse_size(const std::string& text, const std::string& flag);
// "I/N" with 0 <= I < N. Throws Error::usage.
[[nodiscard]] Shard parse_shard(const std::string& text);
// {"A=1", ...} -> map. Throws Error::usage naming the flag.
[[nodiscard]] std::map<std::string, std::string> parse_pairs(const std::vector<std::string>& items,
                                                             const std::string& flag);

}  // namespace mxfp4
