// What a blob was asked with, as flags again.
#pragma once

#include <string_view>
#include <vector>

#include "apps/options.hpp"

namespace mxfp4 {

// The flags of a manifest's `asked` (request_text). Values are any text of a stranger: as_typed
// quotes them for a shell.
[[nodiscard]] std::vector<GivenFlag> asked_flags(std::string_view asked);

}  // namespace mxfp4
