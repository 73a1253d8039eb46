// Manifest -> JSON text, and back. The text is untrusted: every member is typed and checked, and then
// the members against each other (manifest_check).
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "formats/blob/manifest_check.hpp"
#include "formats/blob/manifest_members.hpp"
#include "formats/blob/planned.hpp"
#include "formats/checksum/checksum.hpp"
#include "formats/json/json_fields.hpp"
#include "formats/json/strict_json.hpp"
#include "formats/os/input_fault.hpp"
#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {
namespace {

using Json = nlohmann::ordered_json;  // keys stay in the order in which they are documented

constexpr std::string_view kManifestFormat = "mxfp4-repack";
constexpr const char* kSeal = "manifest_xxh3_128";

std::string_view name_of(Backend value) { return backend_name(value); }
std::string_view name_of(Family value) { return family_name(value); }
std::string_view name_of(Platform value) { return platform_name(value); }
std::string_view name_of(Engine value) { return engine_name(value); }
std::string_view name_of(Loader value) { return loader_name(value); }
std::string_view name_of(W13Order value) { return w13_order_name(value); }
std::string_view name_of(DType value) { return dtype_name(value); }
std::string_view name_of(const WeightFormat& value) { return value.name; }

void find_name(std::string_view name, std::optional<Backend>& out) {
  out = backend_from_name(name);
}
void find_name(std::string_view name, std::optional<Family>& out) { out = family_from_name(name); }
void find_name(std::string_view name, std::optional<Platform>& out) {
  out = platform_from_name(name);
}
void find_name(std::string_view name, std::optional<Engine>& out) { out = engine_from_name(name); }
void find_name(std::string_view name, std::optional<Loader>& out) { out = loader_from_name(name); }
void find_name(std::string_view name, std::optional<W13Order>& out) {
  out = w13_order_from_name(name);
}
void find_name(std::string_view name, std::optional<DType>& out) { out = dtype_from_name(name); }
void find_name(std::string_view name, std::optional<WeightFormat>& out) {
  if (name == kMxfp4Format.name) out = kMxfp4Format;
}

// Objects begin as such here: where null becomes one, and no memory is left, the library asserts.
class ManifestWriter {
 public:
  template <class T>
  using Of = const T&;

  ManifestWriter(Json& object, std::vector<Recipe>& recipes) : json_(object), recipes_(recipes) {
    json_ = Json::object();
  }

  template <class T>
  void value(std::string_view key, const T& value) {
    json_[std::string(key)] = value;
  }
  void value(std::string_view key, const Shape& shape) {
    value(key, std::vector<int64_t>(shape.dims().begin(), shape.dims().end()));
  }
  void value(std::string_view key, std::byte byte) { value(key, std::to_integer<int>(byte)); }
  template <class T>
  void value(std::string_view key, const std::optional<T>& found) {
    found ? value(key, *found) : value(key, Json());
  }
  void value(std::string_view key, const std::vector<std::pair<std::string, int64_t>>& pairs) {
    value(key, std::map<std::string, int64_t>(pairs.begin(), pairs.end()));
  }
  void value(std::string_view key, const std::vector<TraceStep>& trace) {
    Json steps = Json::array();
    for (const TraceStep& step : trace) {
      steps.push_back({step.candidate, step.key ? Json(*step.key) : Json(), step.supported,
                       step.supported ? Json() : Json(step.reason)});
    }
    value(key, steps);
  }
  template <class T>
  void name(std::string_view key, const T& named) {
    value(key, name_of(named));
  }
  template <class T>
  void name(std::string_view key, const std::optional<T>& named) {
    named ? name(key, *named) : value(key, Json());
  }
  void one_of(std::string_view key, bool which, const char* no, const char* yes) {
    value(key, which ? yes : no);
  }
  void constant(std::string_view key, int64_t number) { value(key, number); }
  template <class T>
  void optional(std::string_view key, const T& found) {
    if (found != T{}) value(key, found);
  }
  void json_text(std::string_view key, const std::string& text) {
    if (text != "{}") value(key, Json(nlohmann::json::parse(text)));
  }
  static bool present(std::string_view /*key*/, bool present) { return present; }
  template <class T>
  static const T& there(const std::optional<T>& value) {
    return *value;
  }
  template <class Body>
  void group(std::string_view key, const Body& body) {
    ManifestWriter inner(json_[std::string(key)], recipes_);
    body(inner);
  }
  template <class T>
  void object(std::string_view key, const T& value) {
    group(key, [&](ManifestWriter& inner) { manifest_members::members(inner, value); });
  }
  template <class T>
  void objects(std::string_view key, const std::vector<T>& values) {
    Json& list = json_[std::string(key)] = Json::array();
    for (const T& value : values) {
      ManifestWriter inner(list.emplace_back(), recipes_);
      manifest_members::members(inner, value);
    }
  }
  // The recipes of all layers, each once: their place, and a layer's number among them.
  void recipes(std::string_view key) { value(key, Json::array()); }
  void shared_recipe(std::string_view key, const Recipe& recipe) {
    const auto found = std::ranges::find(recipes_, recipe);
    value(key, found - recipes_.begin());
    if (found == recipes_.end()) recipes_.push_back(recipe);
  }

 private:
  Json& json_;
  std::vector<Recipe>& recipes_;
};

class ManifestReader {
 public:
  template <class T>
  using Of = T&;

  ManifestReader(const JsonFields& object, std::vector<Recipe>& recipes)
      : json_(object), recipes_(recipes) {}

  void value(std::string_view key, std::string& out) { out = json_.string(key); }
  void value(std::string_view key, int64_t& out) { out = json_.integer(key); }
  void value(std::string_view key, bool& out) { out = json_.boolean(key); }
  void value(std::string_view key, int& out) {
    const int64_t number = json_.integer(key);
    if (number > INT32_MAX) throw Error::input(json_.path(key) + ": too large");
    out = static_cast<int>(number);
  }
  void value(std::string_view key, std::byte& out) {
    const int64_t byte = json_.integer(key);
    if (byte > 0xFF) throw Error::input(json_.path(key) + ": not a byte");
    out = static_cast<std::byte>(byte);
  }
  void value(std::string_view key, Shape& out) {
    const std::vector<int64_t> dims = json_.integers(key);
    in_context(json_.path(key), [&] { out = Shape(std::span(dims)); });
  }
  void value(std::string_view key, std::vector<int64_t>& out) { out = json_.integers(key); }
  void value(std::string_view key, std::vector<std::string>& out) { out = json_.strings(key); }
  void value(std::string_view key, std::set<std::string>& out) {
    const std::vector<std::string> all = json_.strings(key);
    out = {all.begin(), all.end()};
  }
  void value(std::string_view key, std::map<std::string, std::string>& out) {
    const JsonFields pairs = json_.object(key);
    for (const auto& item : pairs.value().items()) out[item.key()] = pairs.string(item.key());
  }
  void value(std::string_view key, std::vector<std::pair<std::string, int64_t>>& out) {
    const JsonFields pairs = json_.object(key);
    for (const auto& item : pairs.value().items()) {
      out.emplace_back(item.key(), pairs.integer(item.key()));
    }
  }
  void value(std::string_view key, std::vector<TraceStep>& out) {
    const nlohmann::json& steps = json_.at(key);
    if (!steps.is_array()) json_.wrong_type(key, "an array", steps);
    for (const nlohmann::json& step : steps) {
      const bool sound = step.is_array() && step.size() == 4 && step[0].is_string() &&
                         (step[1].is_string() || step[1].is_null()) && step[2].is_boolean() &&
                         (step[2].get<bool>() ? step[3].is_null() : step[3].is_string());
      if (!sound) {
        throw Error::input(json_.path(key) + ": expected [class, key, supported, reason]");
      }
      TraceStep& read = out.emplace_back();
      read.candidate = step[0].get<std::string>();
      if (step[1].is_string()) read.key = step[1].get<std::string>();
      read.supported = step[2].get<bool>();
      if (!read.supported) read.reason = step[3].get<std::string>();
    }
  }
  template <class T>
  void value(std::string_view key, std::optional<T>& out) {
    if (json_.has(key)) value(key, out.emplace());
  }
  template <class T>
  void name(std::string_view key, T& out) {
    std::optional<T> found;
    name(key, found);
    if (!found) throw Error::input(json_.path(key) + ": missing");
    out = *found;
  }
  template <class T>
  void name(std::string_view key, std::optional<T>& out) {
    if (!json_.has(key)) return;
    const std::string name = json_.string(key);
    find_name(name, out);
    if (!out || name_of(*out) != name) {
      throw Error::input(fmt::format("{}: unknown value '{}'", json_.path(key), name));
    }
  }
  void one_of(std::string_view key, bool& which, const char* no, const char* yes) {
    const std::string name = json_.string(key);
    which = name == yes;
    if (!which && name != no) {
      throw Error::input(fmt::format("{}: unknown value '{}'", json_.path(key), name));
    }
  }
  void constant(std::string_view /*key*/, int64_t /*number*/) {}
  template <class T>
  void optional(std::string_view key, T& out) {
    if (json_.has(key)) value(key, out);
  }
  void json_text(std::string_view key, std::string& out) {
    if (json_.has(key)) out = json_.object(key).value().dump();
  }
  bool present(std::string_view key, bool /*present*/) { return json_.has(key); }
  template <class T>
  static T& there(std::optional<T>& value) {
    return value.emplace();
  }
  template <class Body>
  void group(std::string_view key, const Body& body) {
    const JsonFields object = json_.object(key);
    ManifestReader inner(object, recipes_);
    body(inner);
  }
  template <class T>
  void object(std::string_view key, T& value) {
    group(key, [&](ManifestReader& inner) { manifest_members::members(inner, value); });
  }
  template <class T>
  void objects(std::string_view key, std::vector<T>& values) {
    json_.each(key, [&](const JsonFields& item) {
      ManifestReader inner(item, recipes_);
      manifest_members::members(inner, values.emplace_back());
    });
  }
  void recipes(std::string_view key) { objects(key, recipes_); }
  void shared_recipe(std::string_view key, Recipe& out) {
    const int64_t number = json_.integer(key);
    if (number >= std::ssize(recipes_)) {
      throw Error::input(
          fmt::format("{}: {} of {} recipes", json_.path(key), number, recipes_.size()));
    }
    out = recipes_[static_cast<size_t>(number)];
  }

 private:
  const JsonFields& json_;
  std::vector<Recipe>& recipes_;
};

void check_format(const JsonFields& object, std::string_view format) {
  if (object.string("format") != format) {
    throw Error::input(fmt::format("format: expected '{}'", format));
  }
  const int64_t version = object.integer("format_version");
  if (version == kFormatVersion) return;
  throw Error::input(fmt::format("format_version: {} is not known to this program, which knows {}",
                                 version, kFormatVersion))
      .hint(version > kFormatVersion ? kNewerProgram : "convert again");
}

// A blob states every checksum: a reader compares nothing where none is known.
void check_checksums_known(const Manifest& manifest) {
  const auto check = [](const std::string& of, std::string_view checksum) {
    if (checksum == kNoChecksum) {
      throw Error::input(fmt::format("{}: xxh3_128: is not known, as in a plan", of));
    }
  };
  for (const ManifestLayer& layer : manifest.layers) {
    check(layer.file, layer.xxh3_128);
    for (const ManifestTensor& tensor : layer.tensors) check(tensor.name, tensor.xxh3_128);
  }
}

template <class T>
Json to_json(const T& value) {
  Json json;
  std::vector<Recipe> unused;
  ManifestWriter writer(json, unused);
  manifest_members::members(writer, value);
  return json;
}

// Such a text without its seal. Throws Error::input unless `format` and version are right and the
// content is as it was sealed.
nlohmann::json parse_sealed(std::string_view text, std::string_view format) {
  nlohmann::json json;
  try {
    json = parse_strict_json(text);
  } catch (Error& error) {
    if (error.hint_text().empty()) error.hint("is the copy complete? fetch the file again");
    throw;
  }
  const JsonFields object(json);
  check_format(object, format);
  const std::string seal = object.string(kSeal);
  json.erase(kSeal);
  if (seal != checksum_of(json.dump())) {
    throw InputFault(Fault::kChecksum,
                     fmt::format("{}: the manifest was changed after it was written", kSeal));
  }
  return json;
}

}  // namespace

Json storage_to_json(const Storage& storage) { return to_json(storage); }
Json recipe_to_json(const Recipe& recipe) { return to_json(recipe); }

Json manifest_to_json(const Manifest& manifest) {
  Json json;
  std::vector<Recipe> recipes;
  ManifestWriter writer(json, recipes);
  writer.value("format", kManifestFormat);
  writer.value("format_version", kFormatVersion);
  manifest_members::members(writer, manifest);
  std::ranges::transform(recipes, std::back_inserter(json["recipes"]), recipe_to_json);
  return json;
}

Manifest manifest_from_json(const JsonFields& object) {
  check_format(object, kManifestFormat);
  Manifest manifest;
  std::vector<Recipe> recipes;
  ManifestReader reader(object, recipes);
  manifest_members::members(reader, manifest);
  manifest.decision.revision = manifest.revision;
  check_manifest(manifest);
  return manifest;
}

std::string seal_json(const Json& json) {
  Json sealed = json;
  sealed[kSeal] = checksum_of(nlohmann::json(json).dump());
  return sealed.dump(2) + "\n";
}

std::string write_manifest(const Manifest& manifest) {
  return seal_json(manifest_to_json(manifest));
}

Manifest parse_manifest(std::string_view text) {
  const nlohmann::json json = parse_sealed(text, kManifestFormat);
  Manifest manifest = manifest_from_json(JsonFields(json));
  check_checksums_known(manifest);
  return manifest;
}

}  // namespace mxfp4
