#include "formats/raw_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "formats/mapped_source.hpp"
#include "formats/strict_json.hpp"
#include "lib/core/checked.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kFormat = "mxfp4-raw";
constexpr int64_t kVersion = 1;
constexpr int64_t kMaxManifestBytes = 64 << 20;
constexpr int64_t kMaxConfigBytes = 16 << 20;

const json* find(const json& object, std::string_view key) {
  const auto at = object.find(key);
  return at == object.end() ? nullptr : &*at;
}

const json& require(const json& object, std::string_view key) {
  const json* value = find(object, key);
  if (value == nullptr) throw Error::input(fmt::format("{}: missing", key));
  return *value;
}

const std::string& as_string(const json& value, std::string_view key) {
  if (!value.is_string()) throw Error::input(fmt::format("{}: not a string", key));
  return value.get_ref<const std::string&>();
}

int64_t as_size(const json& value, std::string_view key) {
  if (!value.is_number_integer() ||
      (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX) ||
      value.get<int64_t>() < 0) {
    throw Error::input(fmt::format("{}: not a non-negative integer of 63 bits", key));
  }
  return value.get<int64_t>();
}

// If the key is there, its value must be one of these.
void check_choice(const json& manifest, std::string_view key,
                  std::initializer_list<std::string_view> choices) {
  const json* value = find(manifest, key);
  if (value == nullptr) return;
  const std::string& text = as_string(*value, key);
  if (std::ranges::find(choices, text) != choices.end()) return;
  throw Error::input(
      fmt::format("{}: {}, expected {}", key, in_quotes(text), fmt::join(choices, " or ")));
}

// A path below the manifest's directory, spelled in one way only, so that equal files have equal
// names.
std::string as_path(const json& value, std::string_view key) {
  const std::string& text = as_string(value, key);
  const auto refuse = [&](std::string_view why) {
    throw Error::input(fmt::format("{}: {}: {}", key, in_quotes(text), why));
  };
  if (text.empty()) refuse("empty, expected a path relative to the manifest");
  if (text.find('\0') != std::string::npos) refuse("holds a NUL");
  if (text.front() == '/') refuse("absolute, expected a path relative to the manifest");
  std::string_view rest = text;
  while (true) {
    const size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    if (part == "..") refuse("leaves the manifest's directory");
    if (part.empty() || part == ".") refuse("has an empty or . component");
    if (slash == std::string_view::npos) return text;
    rest.remove_prefix(slash + 1);
  }
}

Sha256Digest as_digest(const json& value) {
  const std::string& text = as_string(value, "sha256");
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  };
  Sha256Digest digest{};
  if (text.size() != 2 * digest.size() ||
      std::ranges::any_of(text, [&](char c) { return digit(c) < 0; })) {
    throw Error::input("sha256: not 64 hexadecimal digits");
  }
  for (size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<std::byte>(digit(text[2 * i]) * 16 + digit(text[2 * i + 1]));
  }
  return digest;
}

Shape as_shape(const json& value) {
  if (!value.is_array()) throw Error::input("shape: not an array");
  if (value.size() > Shape::kMaxRank) {
    throw Error::input(fmt::format("shape: {} dimensions, at most {} are supported", value.size(),
                                   static_cast<int>(Shape::kMaxRank)));
  }
  std::vector<int64_t> dims;
  for (const json& dim : value) dims.push_back(as_size(dim, "shape"));
  return Shape(dims);
}

DType as_dtype(const json& value) {
  const std::string& text = as_string(value, "dtype");
  const auto dtype = dtype_from_name(text);
  if (!dtype) throw Error::input(fmt::format("dtype: unknown dtype {}", in_quotes(text)));
  return *dtype;
}

// A misspelt optional key would silently mean its default, so none is ignored.
void check_tensor_keys(const json& entry) {
  constexpr std::array<std::string_view, 7> kKeys = {"name",   "file",   "dtype", "shape",
                                                     "offset", "nbytes", "sha256"};
  for (const auto& [key, value] : entry.items()) {
    if (std::ranges::find(kKeys, key) == kKeys.end()) {
      throw Error::input(
          fmt::format("unknown key {}, expected {}", in_quotes(key), fmt::join(kKeys, ", ")));
    }
  }
}

RawTensor parse_tensor(const json& entry) {
  RawTensor tensor;
  tensor.name = as_string(require(entry, "name"), "name");
  check_tensor_name(tensor.name);
  return in_context(shown(tensor.name), [&] {
    check_tensor_keys(entry);
    tensor.file = as_path(require(entry, "file"), "file");
    tensor.spec = {as_dtype(require(entry, "dtype")), as_shape(require(entry, "shape"))};
    if (const json* offset = find(entry, "offset")) tensor.offset = as_size(*offset, "offset");
    tensor.nbytes = as_size(require(entry, "nbytes"), "nbytes");
    const int64_t needed = in_context("shape", [&] { return tensor.spec.bytes(); });
    if (tensor.nbytes != needed) {
      throw Error::input(fmt::format("nbytes: {}, but {} {} needs {}", tensor.nbytes,
                                     dtype_name(tensor.spec.dtype), tensor.spec.shape.to_string(),
                                     needed));
    }
    (void)in_context("offset", [&] { return checked_add(tensor.offset, tensor.nbytes); });
    if (const json* checksum = find(entry, "sha256")) tensor.checksum = as_digest(*checksum);
    return std::move(tensor);
  });
}

void check_unique_names(const std::vector<RawTensor>& tensors) {
  std::set<std::string_view> names;
  for (const RawTensor& tensor : tensors) {
    if (!names.insert(tensor.name).second) {
      throw Error::input(fmt::format("{}: listed twice", shown(tensor.name)));
    }
  }
}

void check_overlaps(const std::vector<RawTensor>& tensors) {
  std::vector<const RawTensor*> order;
  for (const RawTensor& tensor : tensors) {
    if (tensor.nbytes > 0) order.push_back(&tensor);
  }
  std::ranges::sort(order, {}, [](const RawTensor* t) {
    return std::tuple<std::string_view, int64_t>(t->file, t->offset);
  });
  for (size_t i = 1; i < order.size(); ++i) {
    const RawTensor& a = *order[i - 1];
    const RawTensor& b = *order[i];
    if (a.file == b.file && b.offset < a.offset + a.nbytes) {
      throw Error::input(fmt::format("{}: its bytes overlap those of {} in {}", shown(b.name),
                                     in_quotes(a.name), in_quotes(a.file)));
    }
  }
}

void check_manifest_keys(const json& manifest) {
  if (!manifest.is_object()) throw Error::input("not a JSON object");
  const std::string& format = as_string(require(manifest, "format"), "format");
  if (format != kFormat) {
    throw Error::input(fmt::format("format: {}, expected {}", in_quotes(format), kFormat));
  }
  const int64_t version = as_size(require(manifest, "version"), "version");
  if (version != kVersion) {
    throw Error::input(fmt::format("version: {}, expected {}", version, kVersion));
  }
  check_choice(manifest, "layout", {"checkpoint", "loaded"});
  check_choice(manifest, "byte_order", {"little"});
  check_choice(manifest, "order", {"C"});
}

}  // namespace

RawManifest parse_raw_manifest(std::string_view text) {
  const json document = parse_strict_json(text);
  check_manifest_keys(document);
  RawManifest manifest;
  for (const auto& [key, value] : document.items()) {
    if (value.is_string()) manifest.attributes[key] = value.get<std::string>();
    if (value.is_number_integer()) manifest.attributes[key] = value.dump();
  }
  if (const json* config = find(document, "config")) manifest.config = as_path(*config, "config");
  const json& tensors = require(document, "tensors");
  if (!tensors.is_array()) throw Error::input("tensors: not an array");
  for (size_t i = 0; i < tensors.size(); ++i) {
    in_context("tensors", [&] {
      if (!tensors[i].is_object()) throw Error::input(fmt::format("entry {}: not an object", i));
      manifest.tensors.push_back(parse_tensor(tensors[i]));
    });
  }
  in_context("tensors", [&] {
    check_unique_names(manifest.tensors);
    check_overlaps(manifest.tensors);
  });
  return manifest;
}

bool is_raw_manifest(const fs::path& path) {
  try {
    const json document = parse_strict_json(read_text_file(path, kMaxManifestBytes));
    const json* format = document.is_object() ? find(document, "format") : nullptr;
    return format != nullptr && *format == kFormat;
  } catch (const Error&) {
    return false;
  }
}

std::unique_ptr<Source> open_raw(const fs::path& path) {
  MappedTensors content;
  content.kind = "raw";
  RawManifest manifest = in_context(path.string(), [&] {
    content.files.push_back(describe_file(path));
    return parse_raw_manifest(read_text_file(path, kMaxManifestBytes));
  });
  content.attributes = std::move(manifest.attributes);
  const fs::path dir = path.parent_path();
  if (manifest.config) {
    const fs::path config = dir / *manifest.config;
    in_context(config.string(), [&] {
      content.files.push_back(describe_file(config));
      content.config_json = read_text_file(config, kMaxConfigBytes);
    });
  }
  std::map<std::string, size_t> map_of;  // file -> index in content.maps
  for (RawTensor& tensor : manifest.tensors) {
    const fs::path file = dir / tensor.file;
    in_context(file.string(), [&] {
      const auto [at, added] = map_of.emplace(tensor.file, content.maps.size());
      if (added) {
        content.maps.emplace_back(file);
        content.files.push_back(content.maps.back().file());
      }
      const ConstBytes bytes = content.maps[at->second].bytes();
      if (tensor.offset + tensor.nbytes > static_cast<int64_t>(bytes.size())) {
        throw Error::input(fmt::format("{}: needs bytes {} to {}, the file has {}",
                                       shown(tensor.name), tensor.offset,
                                       tensor.offset + tensor.nbytes, bytes.size()))
            .hint("the file may be truncated");
      }
      content.data.push_back(
          bytes.subspan(static_cast<size_t>(tensor.offset), static_cast<size_t>(tensor.nbytes)));
    });
    content.tensors.push_back(
        {.name = std::move(tensor.name), .spec = tensor.spec, .file = file.string()});
    content.checksums.push_back(tensor.checksum);
  }
  return std::make_unique<MappedSource>(std::move(content));
}

}  // namespace mxfp4
