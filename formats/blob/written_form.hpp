// A manifest is valid in one form only: the text that this program would write for its content.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "lib/core/storage.hpp"

namespace mxfp4 {

// Throws Error::input, with the first line that differs, unless the text that was read, `found`, is
// equal to its content written again, `expected`. So no key or space is accepted that is never
// read.
void check_written_form(std::string_view found, std::string_view expected);

[[nodiscard]] nlohmann::ordered_json storage_to_json(const Storage& storage);

}  // namespace mxfp4
