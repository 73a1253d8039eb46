#include "formats/safetensors/weight_map.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "formats/json/strict_json.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {

TensorFiles parse_weight_map(std::string_view text) {
  const nlohmann::json index = parse_strict_json(text);
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (!index.is_object() || map == index.end()) throw Error::input("weight_map: missing");
  if (!map->is_object()) throw Error::input("weight_map: not an object");
  if (map->empty()) throw Error::input("weight_map: empty");
  TensorFiles files;
  for (const auto& [name, file] : map->items()) {
    in_context("weight_map: " + shown(name), [&, &tensor = name, &value = file] {
      check_tensor_name(tensor);
      if (!value.is_string()) throw Error::input("not a string, expected a file name");
      const auto& plain = value.get_ref<const std::string&>();
      const bool escapes = plain.empty() || plain == "." || plain == ".." ||
                           plain.find('/') != std::string::npos ||
                           plain.find('\0') != std::string::npos;
      if (escapes) {
        throw Error::input(
            fmt::format("{} is not a plain file name in the directory", in_quotes(plain)));
      }
      files.emplace(tensor, plain);
    });
  }
  return files;
}

}  // namespace mxfp4
