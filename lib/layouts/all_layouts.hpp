// Every layout that this program makes.
#pragma once

#include <span>
#include <string_view>

namespace mxfp4 {

struct Layout;

// Each once, ordered by id; also those that only older releases use.
[[nodiscard]] std::span<const Layout* const> all_layouts();
// Null when there is none. Blobs are read by nothing but this id.
[[nodiscard]] const Layout* layout_by_id(std::string_view id);

}  // namespace mxfp4
