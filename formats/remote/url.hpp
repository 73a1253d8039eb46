// Parts of URLs, as far as it matters who may see what.
#pragma once

#include <string>
#include <string_view>

namespace mxfp4 {

// "https://host:port", in lower case: what a secret is for. All of the text if it is not a URL.
[[nodiscard]] std::string origin_of(std::string_view url);
// Whether a secret may travel there: by https, or to this machine.
[[nodiscard]] bool is_private(std::string_view url);
// The text without blanks at its ends.
[[nodiscard]] std::string trimmed(std::string_view text);
// The text, without quotes, if it is a SHA-256; else nothing.
[[nodiscard]] std::string sha256_in(std::string text);
// The text with all but letters, digits and "-._~" as %XX; `kept` stays, too.
[[nodiscard]] std::string escaped(std::string_view text, std::string_view kept = "");

}  // namespace mxfp4
