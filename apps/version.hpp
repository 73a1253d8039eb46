// What --version prints.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace mxfp4 {

// "mxfp4-repack 0.2.0", and with `verbose` what a bug report needs: the commit, the releases that
// the program knows, its libraries and the instructions in use.
[[nodiscard]] std::string version_text(bool verbose);

// The same as the document of --version --json.
[[nodiscard]] nlohmann::ordered_json version_json();

}  // namespace mxfp4
