// Layout::outputs_doc says in symbols what Layout::outputs makes. Here the words are read and every
// name, type and shape compared with the outputs at several sizes.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cctype>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "lib/layouts/layout.hpp"
#include "lib/revisions/revisions.hpp"
#include "tests/property/target_space.hpp"

namespace mxfp4::test {
namespace {

using Symbols = std::map<std::string, int64_t>;

// Evaluates "32*up(S,8)", "2N'" or "up(N,32)/32": products and quotients from the left, a number
// before a symbol is a factor.
class SizeExpression {
 public:
  SizeExpression(std::string_view text, const Symbols& symbols) : text_(text), symbols_(symbols) {}

  int64_t value() {
    const int64_t value = product();
    if (at_ != text_.size()) throw std::runtime_error(fmt::format("cannot read '{}'", text_));
    return value;
  }

 private:
  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  void take(char expected) {
    if (peek() != expected) throw std::runtime_error(fmt::format("no {} in '{}'", expected, text_));
    ++at_;
  }

  int64_t product() {
    int64_t value = factor();
    while (true) {
      const char next = peek();
      if (next == '*') {
        take('*');
        value *= factor();
      } else if (next == '/') {
        take('/');
        const int64_t divisor = factor();
        EXPECT_EQ(value % divisor, 0) << text_;
        value /= divisor;
      } else if (std::isalpha(static_cast<unsigned char>(next)) != 0) {
        value *= factor();
      } else {
        return value;
      }
    }
  }

  int64_t factor() {
    if (std::isdigit(static_cast<unsigned char>(peek())) != 0) {
      int64_t number = 0;
      while (std::isdigit(static_cast<unsigned char>(peek())) != 0) {
        number = number * 10 + (text_[at_++] - '0');
      }
      return number;
    }
    if (peek() == '(') {
      take('(');
      const int64_t value = product();
      take(')');
      return value;
    }
    if (text_.substr(at_).starts_with("up(")) {
      at_ += 3;
      const int64_t value = product();
      take(',');
      const int64_t multiple = product();
      take(')');
      return (value + multiple - 1) / multiple * multiple;
    }
    if (peek() == '\0') throw std::runtime_error(fmt::format("no factor ends '{}'", text_));
    std::string name(1, peek());
    if (text_.substr(at_ + 1).starts_with('\'')) name += '\'';
    at_ += name.size();
    const auto found = symbols_.find(name);
    if (found == symbols_.end()) throw std::runtime_error(fmt::format("'{}' in '{}'", name, text_));
    return found->second;
  }

  std::string_view text_;
  const Symbols& symbols_;
  size_t at_ = 0;
};

// E, H, I, and N, K, C, S of the projection that an output's name begins with.
Symbols symbols_of(const LayerDims& dims, const std::string& name) {
  const bool w13 = name.starts_with("w13_");
  const int64_t n = w13 ? 2 * dims.intermediate_size : dims.hidden_size;
  const int64_t k = w13 ? dims.hidden_size : dims.intermediate_size;
  return {{"E", dims.num_experts},
          {"H", dims.hidden_size},
          {"I", dims.intermediate_size},
          {"N", n},
          {"K", k},
          {"C", k / 2},
          {"S", k / 32}};
}

// Adds what a line such as "N' = up(N,256), K' = up(K,128)" defines.
void define(const std::string& line, Symbols& symbols) {
  static const std::regex kDefinition(R"((\w'?) = (\w+\(\w,\d+\)))");
  for (std::sregex_iterator it(line.begin(), line.end(), kDefinition), end; it != end; ++it) {
    symbols[(*it)[1]] = SizeExpression((*it)[2].str(), symbols).value();
  }
}

std::string spec_text(const TensorSpec& spec) {
  return fmt::format("{} {}", dtype_name(spec.dtype), spec.shape.to_string());
}

// The sizes between a shape's brackets; a comma inside parentheses parts none. None: a scalar.
std::vector<std::string> sizes_in(const std::string& shape) {
  if (shape.empty()) return {};
  std::vector<std::string> sizes(1);
  int depth = 0;
  for (const char c : shape) {
    depth += (c == '(') - (c == ')');
    if (c == ',' && depth == 0) {
      sizes.emplace_back();
    } else {
      sizes.back() += c;
    }
  }
  return sizes;
}

// The words about one output, evaluated: each type that they allow, with the shape. Empty: no line
// names it.
std::set<std::string> specs_in_words(const Layout& layout, const LayoutInput& input,
                                     const Output& output) {
  static const std::regex kLine(R"(((?:\w+, )*\w+): (.*))");
  static const std::regex kShape(R"(\[([^\]]*)\])");
  std::istringstream lines{std::string(layout.outputs_doc)};
  Symbols symbols = symbols_of(input.loaded.dims, output.name);
  std::set<std::string> specs;
  for (std::string line; std::getline(lines, line);) {
    define(line, symbols);
    std::smatch parts;
    if (!std::regex_match(line, parts, kLine)) continue;
    if (!std::regex_search(parts[1].str(), std::regex("\\b" + output.name + "\\b"))) continue;
    const std::string words = parts[2];
    if (words.starts_with("as loaded")) {
      specs.insert(spec_text(input.loaded.tensor(output.slot)));
      continue;
    }
    std::smatch shape;
    if (!std::regex_search(words, shape, kShape)) throw std::runtime_error("no shape: " + line);
    std::vector<int64_t> sizes;
    for (const std::string& size : sizes_in(shape[1].str())) {
      sizes.push_back(SizeExpression(size, symbols).value());
    }
    std::istringstream types(words.substr(0, words.find('[')));
    for (std::string type; types >> type;) {
      if (type != "or") specs.insert(fmt::format("{} [{}]", type, fmt::join(sizes, ", ")));
    }
  }
  return specs;
}

TEST(LayoutWords, OutputsAreAsTheyAreDescribed) {
  std::set<std::string_view> checked;
  for (const LayerDims& sizes : {LayerDims{3, 2880, 2880}, {5, 320, 160}, {2, 512, 768}}) {
    for (const RuleSet* rules : all_revisions()) {
      for (const LayoutRow& row : rules->layouts) {
        if (row.layout == nullptr) continue;
        const auto input = first_input_of(*rules, row, sizes);
        if (!input) continue;
        for (const Output& output : make_outputs(*row.layout, *input)) {
          SCOPED_TRACE(fmt::format("{} {}", row.layout->id, output.name));
          const auto specs = specs_in_words(*row.layout, *input, output);
          EXPECT_TRUE(specs.contains(spec_text(output.spec)))
              << spec_text(output.spec) << ", in words "
              << fmt::format("{}", fmt::join(specs, "; "));
        }
        checked.insert(row.layout->id);
      }
    }
  }
  EXPECT_EQ(checked.size(), all_layouts().size());
}

}  // namespace
}  // namespace mxfp4::test
