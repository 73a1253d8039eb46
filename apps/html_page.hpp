// Pages for a browser: one file that needs no other and runs no script.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace mxfp4 {

// `text` as HTML shows it, in an element or an attribute.
[[nodiscard]] std::string html_escaped(std::string_view text);

// A page with this title, which is also its heading, above `body`, which is HTML.
[[nodiscard]] std::string html_page(const std::string& title, const std::string& body);

// Writes a page of html_page(). Throws Error::output, also if `file` exists and is not such a page.
void write_html_page(const std::filesystem::path& file, const std::string& page);

}  // namespace mxfp4
