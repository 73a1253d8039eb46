#include "formats/json/strict_json.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "lib/core/text.hpp"

namespace mxfp4 {
namespace {

// Builds the value; refuses a second equal key in one object, and deep nesting. nlohmann's parser
// callback could do that too, but takes quadratic time: whenever a member ends, it searches the
// whole object for members to drop.
template <class Json>
class StrictBuilder final : public nlohmann::json_sax<Json> {
 public:
  StrictBuilder(std::string_view text, bool last_counts) : text_(text), last_counts_(last_counts) {}
  [[nodiscard]] Json take() { return std::move(root_); }

  bool null() override { return add(Json()); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(typename Json::number_integer_t value) override { return add(value); }
  bool number_unsigned(typename Json::number_unsigned_t value) override { return add(value); }
  bool number_float(double value, const std::string& /*text*/) override { return add(value); }
  bool string(std::string& value) override { return add(std::move(value)); }
  bool binary(typename Json::binary_t& /*value*/) override { return false; }  // JSON text has none

  bool start_object(size_t /*elements*/) override { return open(Json::object()); }
  bool start_array(size_t /*elements*/) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& key) override {
    auto& members = open_.back()->template get_ref<typename Json::object_t&>();
    if constexpr (kOrdered) {
      // The object's own insertion would search all members.
      const auto [at, added] = keys_.back().emplace(key, members.size());
      if (!added && !last_counts_) refuse_second(key);
      if (added) members.emplace_back(key, nullptr);
      member_ = &(members.begin() + static_cast<std::ptrdiff_t>(at->second))->second;
    } else {
      const auto [at, added] = members.emplace(key, nullptr);
      if (!added && !last_counts_) refuse_second(key);
      member_ = &at->second;
    }
    return true;
  }
  bool parse_error(size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    throw not_json(text_, error);
  }

 private:
  static constexpr bool kOrdered = std::is_same_v<Json, nlohmann::ordered_json>;

  [[noreturn]] static void refuse_second(const std::string& key) {
    throw Error::input(fmt::format("key {} appears twice in one object", in_quotes(key)));
  }
  Json& place(Json value) {
    if (open_.empty()) return root_ = std::move(value);
    if (open_.back()->is_array()) return open_.back()->emplace_back(std::move(value));
    return *member_ = std::move(value);
  }
  bool add(Json value) {
    place(std::move(value));
    return true;
  }
  bool open(Json container) {
    if (open_.size() == kMaxJsonDepth) {
      throw Error::input(fmt::format("JSON is nested deeper than {} levels", kMaxJsonDepth));
    }
    open_.push_back(&place(std::move(container)));
    if (kOrdered) keys_.emplace_back();
    return true;
  }
  bool close() {
    open_.pop_back();
    if (kOrdered) keys_.pop_back();
    return true;
  }

  std::string_view text_;
  Json root_;
  std::vector<Json*> open_;  // the containers around the current place, outermost first
  bool last_counts_;         // of several equal keys
  std::vector<std::map<std::string, size_t>> keys_;  // of each open container, if ordered: places
  Json* member_ = nullptr;  // of the innermost object: the value of the last key
};

template <class Json>
Json parse(std::string_view text, bool last_counts = false) {
  check_json_text(text);
  StrictBuilder<Json> builder(text, last_counts);
  (void)Json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

}  // namespace

bool is_lfs_pointer(std::string_view begin) {
  return begin.starts_with("version https://git-lfs.github.com/spec/");
}

void check_json_text(std::string_view text) {
  check_utf8(text);
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    throw Error::input(fmt::format("not JSON: NUL byte at position {}", nul));
  }
}

Error not_json(std::string_view text, const std::exception& error) {
  if (is_lfs_pointer(text)) return Error::input(kLfsPointer).hint(kFetchLfs);
  std::string what = error.what();
  what.erase(0, what.find("] ") + 2);
  constexpr std::string_view kAt = "parse error at ";
  if (what.starts_with(kAt)) what.erase(0, kAt.size());
  // What was read last can hold most of the file.
  if (const size_t read = what.find("; last read: "); read != std::string::npos) {
    const size_t expected = what.rfind("; expected ");
    what.erase(read, expected == std::string::npos ? expected : expected - read);
  }
  return Error::input("not JSON: " + shown(what));
}

nlohmann::json parse_strict_json(std::string_view text, bool last_counts) {
  return parse<nlohmann::json>(text, last_counts);
}

nlohmann::ordered_json parse_strict_ordered_json(std::string_view text, bool last_counts) {
  return parse<nlohmann::ordered_json>(text, last_counts);
}

}  // namespace mxfp4
