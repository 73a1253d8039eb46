// Says how the plans of two results differ, in terms of the flags that decide them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "formats/blob/manifest.hpp"

namespace mxfp4 {

// The member at `place`, a JSON pointer, as people read it; "none" if there is none.
[[nodiscard]] std::string text_at(const nlohmann::ordered_json& json, std::string_view place);

// One text for each difference, "--level: 1, now 3". What depends on the data is not compared.
// Empty if the two manifests are of the same plan.
[[nodiscard]] std::vector<std::string> differing_flags(const Manifest& then, const Manifest& now);

}  // namespace mxfp4
