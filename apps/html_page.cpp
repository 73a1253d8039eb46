#include "apps/html_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <system_error>
#include <utility>

#include "apps/request.hpp"
#include "formats/os/atomic_file.hpp"
#include "formats/output/output_directory.hpp"
#include "lib/core/error.hpp"
#include "lib/core/visible.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

// The beginning of every page, older ones included. A file that does not begin so is not replaced.
constexpr std::string_view kFront = "<!DOCTYPE html>\n<!-- mxfp4-repack ";
constexpr std::string_view kStyle =
    "body{font:15px/1.5 sans-serif;color:#222;max-width:70em;margin:2em auto;padding:0 1em}"
    "h1{font-size:1.5em;overflow-wrap:break-word}h2{font-size:1.15em;margin-top:2em}"
    "table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.25em .7em;"
    "border-bottom:1px solid #ddd;vertical-align:top;overflow-wrap:break-word}"
    "th.n,td.n{text-align:right;white-space:nowrap}.yes{color:#06702b}.no{color:#777}"
    ".wide{overflow-x:auto}.bar{max-width:100%;background:#dde6f0;height:.8em;width:14em}.bar "
    "div{background:#2a6fb5;height:100%}"
    ".again{visibility:hidden}"
    "@media(max-width:40em){.wide tr:first-child{display:none}.wide table,.wide tbody,.wide tr,"
    ".wide td{display:block;text-align:left}.wide td{border:0;padding:.1em 0}.wide "
    "td.n{text-align:left}.wide tr{border-bottom:1px solid #ddd;padding:.5em 0}.wide "
    "td:not(:empty)::before{content:attr(data-head) \": \";color:#777}.again{visibility:visible}"
    ".wide code{overflow-wrap:anywhere}}"
    "code{font-size:.9em}code "
    "span{display:inline-block;max-width:100%;overflow-wrap:anywhere}details{margin:.4em "
    "0}summary{cursor:pointer}.warn{color:#9a5b00}"
    "@media(prefers-color-scheme:dark){body{background:#181a1b;color:#ddd}th,td,.wide "
    "tr{border-color:#444}"
    ".bar{background:#333}.yes{color:#5fce86}.no{color:#999}.warn{color:#e5a84b}}";

}  // namespace

std::string html_escaped(std::string_view text) {
  std::string out;
  for (const char c : visible(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string html_code(std::string_view text) {
  std::string out = "<code>";
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = html_escaped(text.substr(begin, end - begin));
    if (begin > 0) out += ' ';
    out += word.find('-') == std::string::npos ? word : fmt::format("<span>{}</span>", word);
    begin = end + 1;
  }
  return out + "</code>";
}

HtmlTable::HtmlTable(std::vector<HtmlColumn> columns)
    : columns_(std::move(columns)), html_("<div class=wide><table><tr>") {
  for (const HtmlColumn& column : columns_) {
    html_ += fmt::format("<th{}>{}</th>", column.numbers ? " class=n" : "", column.head);
  }
  html_ += "</tr>\n";
}

void HtmlTable::add(const std::vector<HtmlCell>& cells) {
  html_ += "<tr>";
  for (size_t i = 0; i < cells.size(); ++i) {
    const std::string_view kind = columns_[i].numbers ? "n" : cells[i].kind;
    html_ += fmt::format("<td{}{} data-head=\"{}\">{}</td>", kind.empty() ? "" : " class=", kind,
                         columns_[i].head, cells[i].html);
  }
  html_ += "</tr>\n";
}

std::string html_again(std::string_view text) {
  return fmt::format("<span class=again>{}</span>", html_escaped(text));
}

std::string html_page(const std::string& title, const std::string& body) {
  const std::string name = html_escaped(title);
  return fmt::format(
      "{}page -->\n<html lang=en><head><meta charset=utf-8>"
      "<meta name=viewport content=\"width=device-width\"><title>{}</title>\n<style>{}</style>"
      "</head>\n<body>\n<h1>{}</h1>\n{}</body></html>\n",
      kFront, name, kStyle, name, body);
}

void write_html_page(const fs::path& file, const std::string& page) {
  require_local("--html", file);
  if (file == "-") {
    throw Error::usage("--html: - is not standard output").hint("./- is a file of that name");
  }
  refuse_inside_blob(file);
  std::error_code error;
  if (fs::exists(fs::symlink_status(file, error))) {
    std::string front(kFront.size(), '\0');
    std::ifstream(file, std::ios::binary)
        .read(front.data(), static_cast<std::streamsize>(front.size()));
    if (front != kFront) {
      throw Error::output("exists, and is not a page of this program")
          .in_file(file.string())
          .hint("name another file for --html");
    }
  }
  write_file_atomically(Directory(file.parent_path()), file.filename().string(), page);
}

}  // namespace mxfp4
