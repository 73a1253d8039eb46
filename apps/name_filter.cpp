#include "apps/name_filter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "apps/suggest.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {

bool NameFilter::takes(const std::vector<std::string_view>& names) {
  const auto same = [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  };
  const std::string folder = name_.ends_with('/') ? name_ : name_ + "/";
  const bool takes = name_.empty() || std::ranges::any_of(names, [&](std::string_view name) {
                       return std::ranges::equal(name, name_, same) || name.starts_with(folder);
                     });
  taken_ = taken_ || takes;
  others_.insert(others_.end(), names.begin(), names.end());
  return takes;
}

void NameFilter::require_taken(std::string_view what, std::string_view where,
                               std::string_view table) const {
  if (taken_ || name_.empty()) return;
  throw Error::usage(fmt::format("unknown {} '{}'{}", what, name_, where))
      .hint(nearest_name_hint(name_, others_, table));
}

}  // namespace mxfp4
