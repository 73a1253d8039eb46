#include "formats/json/json_syntax.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "lib/core/text.hpp"
#include "lib/core/visible.hpp"

namespace mxfp4 {
namespace {

bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

// Reads the text once, token by token. A list of open brackets takes the place of recursion.
class SyntaxReader {
 public:
  explicit SyntaxReader(std::string_view text) : text_(text) {
    if (text_.starts_with("\xEF\xBB\xBF")) begin_ = at_ = 3;
  }

  std::string fault() {
    while (step()) {
    }
    return expected_.empty() ? "" : fmt::format("{}: expected {}", place(), expected_) + found();
  }

 private:
  enum class Want { kValue, kValueOrEnd, kKey, kKeyOrEnd, kColon, kCommaOrEnd, kNothing };

  // False at the end of the text or at a fault.
  bool step() {
    while (at_ < text_.size() && std::string_view(" \t\n\r").find(text_[at_]) != kNone) ++at_;
    const char c = current();
    switch (want_) {
      case Want::kNothing:
        return at_ < text_.size() && expect("the end of the text");
      case Want::kColon:
        return c == ':' ? go(Want::kValue) : expect("':'");
      case Want::kKeyOrEnd:
        if (c == '}') return close();
        return c == '"' ? read_string() : expect("a key in double quotes or '}'");
      case Want::kKey:
        return c == '"' ? read_string() : expect("a key in double quotes");
      case Want::kCommaOrEnd:
        if (c == open_.back()) return close();
        if (c == ',') return go(open_.back() == '}' ? Want::kKey : Want::kValue);
        return expect(open_.back() == '}' ? "',' or '}'" : "',' or ']'");
      case Want::kValueOrEnd:
        return c == ']' ? close() : read_value("a value or ']'");
      case Want::kValue:
        break;
    }
    return read_value("a value");
  }

  bool read_value(std::string_view what) {
    const char c = current();
    if (c == '{' || c == '[') {
      open_.push_back(c == '{' ? '}' : ']');
      return go(c == '{' ? Want::kKeyOrEnd : Want::kValueOrEnd);
    }
    if (c == '"') return read_string();
    if (c == '-' || is_digit(c)) return read_number();
    for (const std::string_view word : {"true", "false", "null"}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return value_ends();
    }
    return expect(what);
  }

  bool read_string() {
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (static_cast<unsigned char>(text_[at_]) < 0x20) {
        return expect("'\"' at the end of a string, or an escape such as \\n");
      }
      if (text_[at_] == '\\' && !read_escape()) return false;
    }
    if (at_ == text_.size()) return expect("'\"' at the end of a string");
    ++at_;
    if (want_ != Want::kKey && want_ != Want::kKeyOrEnd) return value_ends();
    want_ = Want::kColon;
    return true;
  }

  // From the backslash to the last character of the escape.
  bool read_escape() {
    const std::string_view rest = text_.substr(at_ + 1);
    if (rest.empty()) return ++at_, expect("an escape such as \\n");
    if (rest.front() != 'u') {
      if (std::string_view("\"\\/bfnrt").find(rest.front()) == kNone) {
        return expect("an escape such as \\n or \\\\");
      }
      ++at_;
      return true;
    }
    if (!hex_escape(at_)) return expect("\\u and four hexadecimal digits");
    // A character beyond 16 bits is written as two escapes, the high half first.
    if (half_at(at_) == 'L') return expect("the high half of a surrogate pair before its low half");
    if (half_at(at_) == 'H') {
      at_ += 6;
      if (!hex_escape(at_) || half_at(at_) != 'L')
        return expect("the low half of a surrogate pair");
    }
    at_ += 5;
    return true;
  }

  [[nodiscard]] bool hex_escape(size_t at) const {
    const std::string_view escape = text_.substr(std::min(at, text_.size()), 6);
    return escape.size() == 6 && escape.starts_with("\\u") &&
           std::ranges::all_of(escape.substr(2), is_hex);
  }

  // 'H' or 'L' for a surrogate's half, else 0.
  [[nodiscard]] char half_at(size_t at) const {
    if (text_[at + 2] != 'd' && text_[at + 2] != 'D') return 0;
    const char c = text_[at + 3];
    if (c < '8') return 0;
    return c == '8' || c == '9' || c == 'a' || c == 'A' || c == 'b' || c == 'B' ? 'H' : 'L';
  }

  bool read_digits() {
    if (!is_digit(current())) return expect("a digit");
    while (is_digit(current())) ++at_;
    return true;
  }

  bool read_number() {
    if (current() == '-') ++at_;
    if (current() == '0') {
      ++at_;
    } else if (!read_digits()) {
      return false;
    }
    if (current() == '.' && (++at_, !read_digits())) return false;
    if (current() == 'e' || current() == 'E') {
      ++at_;
      if (current() == '+' || current() == '-') ++at_;
      if (!read_digits()) return false;
    }
    return value_ends();
  }

  bool value_ends() {
    want_ = open_.empty() ? Want::kNothing : Want::kCommaOrEnd;
    return true;
  }
  bool close() {
    open_.pop_back();
    ++at_;
    return value_ends();
  }
  bool go(Want next) {
    want_ = next;
    ++at_;
    return true;
  }
  bool expect(std::string_view what) {
    expected_ = what;
    return false;
  }

  [[nodiscard]] char current() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  [[nodiscard]] std::string place() const {
    // A fault at the end of the text is reported behind the last thing that is not white space.
    const size_t behind = at_ < text_.size() ? at_ : text_.find_last_not_of(" \t\n\r") + 1;
    const std::string_view before = text_.substr(begin_, std::max(behind, begin_) - begin_);
    const auto line = 1 + std::ranges::count(before, '\n');
    const size_t newline = before.rfind('\n');
    const auto column = 1 + std::ranges::count_if(before.substr(newline == kNone ? 0 : newline + 1),
                                                  [](char c) { return !continues_character(c); });
    const size_t first = text_.find('\n');
    const bool lines = first != kNone && first + 1 < text_.size();
    return lines ? fmt::format("line {}, column {}", line, column)
                 : fmt::format("column {}", column);
  }

  // The text at the fault: a whole word, else one character.
  [[nodiscard]] std::string found() const {
    if (at_ == begin_ && text_.size() == begin_) return ", found nothing";
    if (at_ >= text_.size()) return ", found the end of the text";
    if (text_[at_] == '\n') return ", found the end of the line";
    if (text_[at_] == '\'') return ", found a single quote";
    constexpr size_t kLongest = 20;
    size_t end = at_ + 1;
    if (is_word(text_[at_])) {
      while (end < text_.size() && end < at_ + kLongest && is_word(text_[end])) ++end;
    } else if (text_[at_] == '\\') {
      end = std::min(end + 1, text_.size());
    }
    while (end < text_.size() && continues_character(text_[end])) ++end;
    return fmt::format(", found '{}'", visible(text_.substr(at_, end - at_)));
  }

  static constexpr size_t kNone = std::string_view::npos;

  std::string_view text_;
  size_t begin_ = 0;
  size_t at_ = 0;
  Want want_ = Want::kValue;
  std::vector<char> open_;  // the bracket that closes each open one, outermost first
  std::string_view expected_;
};

}  // namespace

std::string json_fault(std::string_view text) { return SyntaxReader(text).fault(); }

}  // namespace mxfp4
