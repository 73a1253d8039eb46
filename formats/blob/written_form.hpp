// The one text that a manifest may have.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "lib/layouts/layout.hpp"

namespace mxfp4 {

// Throws Error::input, with the first line that differs, unless the text that was read is the one
// that its content would be written as: what no key holds says nothing to anybody.
void check_written_form(std::string_view found, std::string_view expected);

[[nodiscard]] nlohmann::ordered_json storage_to_json(const Storage& storage);

}  // namespace mxfp4
