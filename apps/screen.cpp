#include "apps/screen.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "apps/text_layout.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {
namespace {

// "num_layer_files" -> "layer files"
std::string words_of(std::string_view member) {
  if (member.starts_with("num_")) member.remove_prefix(4);
  std::string words(member);
  std::ranges::replace(words, '_', ' ');
  return words;
}

bool has_objects(const Json& value) {
  return value.is_array() && !value.empty() && value.front().is_object();
}

std::string number_text(std::string_view member, const Json& value) {
  if (member.ends_with("_bytes")) return human_bytes(value.get<int64_t>());
  if (member.ends_with("_seconds")) return fmt::format("{:.1f} s", value.get<double>());
  if (member.ends_with("_percent")) return fmt::format("{:+.1f} %", value.get<double>());
  return value.dump();
}

// In lines of their own, if commas between them would be among others.
std::string joined(const std::vector<std::string>& items) {
  const bool commas = std::ranges::any_of(
      items, [](const std::string& item) { return item.find(',') != std::string::npos; });
  return fmt::format("{}", fmt::join(items, commas ? "\n" : ", "));
}

std::string list_text(std::string_view member, const Json& value) {
  if (member == "layers") return number_ranges(value.get<std::vector<int64_t>>());
  std::vector<std::string> items;
  for (const Json& item : value) items.push_back(value_text(member, item));
  return value.front().is_number() ? fmt::format("[{}]", fmt::join(items, ", ")) : joined(items);
}

std::string object_text(const Json& value) {
  std::vector<std::string> items;
  for (const auto& [name, item] : value.items()) {
    const std::string text = value_text(name, item);
    if (has_objects(item)) {
      items.push_back(fmt::format("{} {}", item.size(), name));
    } else if (item.is_boolean()) {
      if (item.get<bool>()) items.push_back(name);
    } else if (!text.empty()) {
      items.push_back(fmt::format("{} {}", name, text));
    }
  }
  return joined(items);
}

}  // namespace

std::string value_text(std::string_view member, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_number()) return number_text(member, value);
  if (value.empty()) return "";
  return value.is_array() ? list_text(member, value) : object_text(value);
}

std::string fields_text(const Console& console, const Json& object, size_t indent) {
  size_t column = 0;
  for (const auto& [name, value] : object.items()) {
    if (!value_text(name, value).empty()) column = std::max(column, words_of(name).size() + 2);
  }
  const std::string margin(indent, ' ');
  std::string out;
  for (const auto& [name, value] : object.items()) {
    const std::string text = value_text(name, value);
    if (text.empty() || has_objects(value)) continue;
    if (text.find('\n') == std::string::npos) {
      std::string first = margin + console.bold(words_of(name));
      first.append(column - words_of(name).size(), ' ');
      append_wrapped(out, first, indent + column, text);
      continue;
    }
    out += margin + console.bold(words_of(name)) + "\n";
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      append_wrapped(out, margin + "  ", indent + 4, std::string_view(text).substr(at, end - at));
      at = end + 1;
    }
  }
  return out;
}

std::string table_text(const Console& console, const Json& rows,
                       const std::vector<std::string>& members) {
  std::vector<std::vector<std::string>> lines(1);
  for (const std::string& member : members) lines.front().push_back(words_of(member));
  std::vector<int64_t> numbers;  // of the rows that the last line stands for
  for (const Json& row : rows) {
    std::vector<std::string> line;
    for (const std::string& member : members) {
      const Json& value = row.at(member);
      std::string text = value == Json(false) ? "" : value_text(member, value);
      std::ranges::replace(text, '\n', ';');
      line.push_back(std::move(text));
    }
    const bool number = row.at(members.front()).is_number();
    if (number && lines.size() > 1 &&
        std::equal(line.begin() + 1, line.end(), lines.back().begin() + 1)) {
      numbers.push_back(row.at(members.front()));
      lines.back().front() = number_ranges(numbers);
      continue;
    }
    numbers.clear();
    if (number) numbers.push_back(row.at(members.front()));
    if (line != lines.back()) lines.push_back(std::move(line));
  }
  return console.table(lines);
}

}  // namespace mxfp4
