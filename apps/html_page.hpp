// Pages for a browser: one file that needs no other and runs no script.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace mxfp4 {

// `text` as HTML shows it, in an element or an attribute.
[[nodiscard]] std::string html_escaped(std::string_view text);

// A name or a command as code. A line breaks between its words only, not behind a hyphen.
[[nodiscard]] std::string html_code(std::string_view text);

struct HtmlColumn {
  std::string_view head;
  bool numbers = false;  // aligned at the right, the head too
};

struct HtmlCell {
  std::string html;
  std::string_view kind{};  // a class of the page's style: "yes", "no", "warn"
};

// A table. On a narrow screen its rows become lists, whose items begin with the column's head.
class HtmlTable {
 public:
  explicit HtmlTable(std::vector<HtmlColumn> columns);
  // One cell for each column.
  void add(const std::vector<HtmlCell>& cells);
  [[nodiscard]] std::string html() const { return html_ + "</table></div>\n"; }

 private:
  std::vector<HtmlColumn> columns_;
  std::string html_;
};

// A name that the row above has, too: only lists show it.
[[nodiscard]] std::string html_again(std::string_view text);

// A page with this title, which is also its heading, above `body`, which is HTML.
[[nodiscard]] std::string html_page(const std::string& title, const std::string& body);

// Writes a page of html_page(). Throws Error::usage if `file` is "-", and Error::output, also if it
// exists and is not such a page, or lies inside a blob.
void write_html_page(const std::filesystem::path& file, const std::string& page);

}  // namespace mxfp4
