#include "formats/json/strict_json.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "lib/core/error.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {
namespace {

// Refuses a second equal key in one object, and deep nesting, while the value is built.
class KeyGuard {
 public:
  bool operator()(int depth, nlohmann::json::parse_event_t event, nlohmann::json& value) {
    using Event = nlohmann::json::parse_event_t;
    if (depth >= kMaxJsonDepth) {
      throw Error::input(fmt::format("JSON is nested deeper than {} levels", kMaxJsonDepth));
    }
    if (event == Event::object_start) open_objects_.emplace_back();
    if (event == Event::object_end) open_objects_.pop_back();
    if (event == Event::key) {
      const auto& key = value.get_ref<const std::string&>();
      if (!open_objects_.back().insert(key).second) {
        throw Error::input(fmt::format("key {} appears twice in one object", in_quotes(key)));
      }
    }
    return true;
  }

 private:
  std::vector<std::set<std::string>> open_objects_;
};

}  // namespace

void check_json_text(std::string_view text) {
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    throw Error::input(fmt::format("not JSON: NUL byte at position {}", nul));
  }
  check_utf8(text);
}

nlohmann::json parse_strict_json(std::string_view text) {
  check_json_text(text);
  try {
    KeyGuard guard;
    return nlohmann::json::parse(text.begin(), text.end(), std::ref(guard));
  } catch (const nlohmann::json::parse_error& error) {
    throw Error::input(fmt::format("not JSON: syntax error near byte {}", error.byte));
  } catch (const nlohmann::json::exception&) {
    throw Error::input("not JSON: a number is out of range");
  }
}

}  // namespace mxfp4
