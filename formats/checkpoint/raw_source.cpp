#include "formats/checkpoint/raw_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "formats/checkpoint/positioned_source.hpp"
#include "formats/json/json_fields.hpp"
#include "formats/json/strict_json.hpp"
#include "formats/os/file.hpp"
#include "lib/core/checked.hpp"
#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kRawFormat = "mxfp4-raw";
constexpr int64_t kVersion = 1;
constexpr int64_t kMaxRawManifestBytes = 64 << 20;

void check_optional(const JsonFields& manifest, std::string_view key,
                    std::initializer_list<std::string_view> choices) {
  if (manifest.has(key)) check_choice(key, manifest.string(key), choices);
}

// A path below the manifest's directory. Only one spelling of it is allowed, so that equal files
// have equal names.
std::string path_at(const JsonFields& object, std::string_view key) {
  std::string text = object.string(key);
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

Sha256Digest parse_digest(std::string_view text) {
  const auto digit = [](char c) {
    if (is_digit(c)) return c - '0';
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

TensorSpec parse_spec(const JsonFields& entry) {
  const std::string name = entry.string("dtype");
  const auto dtype = dtype_from_name(name);
  if (!dtype) throw Error::input(fmt::format("dtype: unknown dtype {}", in_quotes(name)));
  const std::vector<int64_t> dims = entry.integers("shape");
  return {*dtype, in_context("shape", [&] { return Shape(dims); })};
}

RawTensor parse_tensor(const JsonFields& entry) {
  RawTensor tensor;
  tensor.name = entry.string("name");
  check_tensor_name(tensor.name);
  return in_context(shown(tensor.name), [&] {
    tensor.file = path_at(entry, "file");
    tensor.spec = parse_spec(entry);
    tensor.offset = entry.integer_or("offset", 0);
    tensor.nbytes = entry.integer("nbytes");
    const int64_t needed = in_context("shape", [&] { return tensor.spec.bytes(); });
    if (tensor.nbytes != needed) {
      throw Error::input(fmt::format("nbytes: {}, but {} {} needs {}", tensor.nbytes,
                                     dtype_name(tensor.spec.dtype), tensor.spec.shape.to_string(),
                                     needed));
    }
    (void)in_context("offset", [&] { return checked_add(tensor.offset, tensor.nbytes); });
    if (entry.has("sha256")) tensor.checksum = parse_digest(entry.string("sha256"));
    // Otherwise a misspelt optional key would go unnoticed, and its default would be taken.
    entry.only();
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
      throw Error::input(fmt::format("{}: its bytes overlap the bytes of {} in {}", shown(b.name),
                                     in_quotes(a.name), in_quotes(a.file)));
    }
  }
}

// Whether a file is what numpy.save() writes: the data lies behind a header.
bool begins_array(const fs::path& path) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  std::array<char, kMagic.size()> begin{};
  const InputFile file(path);
  return file.read_some(begin.data(), begin.size()) == begin.size() &&
         std::ranges::equal(begin, kMagic);
}

void check_manifest_keys(const JsonFields& manifest) {
  check_choice("format", manifest.string("format"), {kRawFormat});
  const int64_t version = manifest.integer("version");
  if (version != kVersion) {
    throw Error::input(fmt::format("version: {}, expected {}", version, kVersion));
  }
  check_optional(manifest, "layout", {"checkpoint", "loaded"});
  check_optional(manifest, "byte_order", {"little"});
  check_optional(manifest, "order", {"C"});
}

}  // namespace

RawManifest parse_raw_manifest(std::string_view text) {
  const json document = parse_strict_json(text);
  const JsonFields fields(document);
  check_manifest_keys(fields);
  RawManifest manifest;
  for (const auto& [key, value] : document.items()) {
    if (value.is_string()) manifest.attributes[key] = value.get<std::string>();
    if (value.is_number_integer()) manifest.attributes[key] = value.dump();
  }
  if (fields.has("config")) manifest.config = path_at(fields, "config");
  fields.each("tensors", [&](const JsonFields& entry) {
    in_context("tensors", [&] {
      // Messages name the tensor, not its place in the list.
      manifest.tensors.push_back(parse_tensor(JsonFields(entry.value())));
    });
  });
  in_context("tensors", [&] {
    check_unique_names(manifest.tensors);
    check_overlaps(manifest.tensors);
  });
  return manifest;
}

bool is_raw_manifest(const fs::path& path) {
  try {
    const json document = parse_strict_json(read_text_file(path, kMaxRawManifestBytes));
    const auto format = document.find("format");
    return format != document.end() && *format == kRawFormat;
  } catch (const Error&) {
    return false;
  }
}

std::unique_ptr<Source> open_raw(const fs::path& path) {
  SourceContents content{.kind = "raw"};
  RawManifest manifest = in_file(path.string(), [&] {
    content.files.push_back(describe_file(path));
    return parse_raw_manifest(read_text_file(path, kMaxRawManifestBytes));
  });
  content.attributes = std::move(manifest.attributes);
  const fs::path dir = path.parent_path();
  if (manifest.config) {
    const fs::path config = dir / *manifest.config;
    in_file(config.string(), [&] {
      content.files.push_back(describe_file(config));
      content.config_json = read_text_file(config, kMaxConfigBytes);
    });
  }
  std::vector<std::optional<Sha256Digest>> checksums;
  std::map<std::string, size_t> number_of;  // file -> index in content.files
  for (RawTensor& tensor : manifest.tensors) {
    const fs::path file = dir / tensor.file;
    in_file(file.string(), [&] {
      const auto [at, added] = number_of.emplace(tensor.file, content.files.size());
      if (added) content.files.push_back(describe_file(file));
      const int64_t size = content.files[at->second].size;
      if (tensor.offset + tensor.nbytes > size) {
        throw Error::input(fmt::format("{}: needs bytes {} to {}, the file has {}",
                                       shown(tensor.name), tensor.offset,
                                       tensor.offset + tensor.nbytes, size))
            .hint("the file may be truncated");
      }
      if (tensor.offset == 0 && begins_array(file)) {
        throw Error::input(fmt::format("{}: offset 0 is the header of a NumPy array, not the data",
                                       shown(tensor.name)));
      }
    });
    content.tensors.push_back({.name = std::move(tensor.name),
                               .spec = tensor.spec,
                               .file = file.string(),
                               .file_offset = tensor.offset});
    checksums.push_back(tensor.checksum);
  }
  return std::make_unique<PositionedSource>(std::move(content), std::move(checksums));
}

}  // namespace mxfp4
