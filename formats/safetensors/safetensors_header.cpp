#include "formats/safetensors/safetensors_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <tuple>
#include <utility>

#include "formats/json/json_fields.hpp"
#include "formats/json/strict_json.hpp"
#include "lib/core/checked.hpp"
#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {
namespace {

constexpr std::string_view kMetadataKey = "__metadata__";

// Takes each member of the outer object as soon as it is read, and lets it go: memory grows with
// the tensors, not with a tree of values for all of them.
class HeaderReader {
 public:
  explicit HeaderReader(SafetensorsHeader& header) : header_(header) {}

  void read(std::string_view text) {
    try {
      const json rest = json::parse(
          text, [this](int depth, Event event, json& value) { return take(depth, event, value); });
    } catch (const json::exception& error) {
      in_context("header", [&] { throw not_json(text, error); });
    }
  }

 private:
  using json = nlohmann::json;
  using Event = json::parse_event_t;

  // Called by the parser; `depth` 1 is inside the outer object. False: the value is dropped.
  bool take(int depth, Event event, json& value) {
    if (depth == 1 && event == Event::key) {
      name_ = value.get<std::string>();
      keys_ = 0;
    } else if (depth == 2 && event == Event::key) {
      if (++keys_ > kMaxSafetensorsMetadata) throw too_many_keys();
    } else if (depth == 1 &&
               (event == Event::object_end || event == Event::array_end || event == Event::value)) {
      read_member(value);
      return false;
    }
    return true;
  }

  [[nodiscard]] Error too_many_keys() const {
    return Error::input(
        fmt::format("{}: more than {} entries", shown(name_), kMaxSafetensorsMetadata));
  }

  void read_member(const json& value) {
    const JsonFields fields(value, shown(name_));
    // The parser keeps the last of several equal keys.
    if (std::ssize(value) != keys_) {
      throw Error::input(fmt::format("{}: a key appears twice", shown(name_)));
    }
    if (name_ == kMetadataKey) return read_metadata(fields);
    check_tensor_name(name_);
    SafetensorsTensor tensor;
    tensor.name = name_;
    const std::string dtype = fields.string("dtype");
    const auto known = dtype_from_name(dtype);
    if (!known) {
      throw Error::input(
          fmt::format("{}: unknown dtype {}", fields.path("dtype"), in_quotes(dtype)));
    }
    tensor.spec.dtype = *known;
    const std::vector<int64_t> dims = fields.integers("shape");
    if (dims.size() > Shape::kMaxRank) {
      throw Error::input(fmt::format("{}: more than {} dimensions", fields.path("shape"),
                                     static_cast<int>(Shape::kMaxRank)));
    }
    tensor.spec.shape = Shape(dims);
    const std::vector<int64_t> offsets = fields.integers("data_offsets");
    if (offsets.size() != 2) {
      throw Error::input(
          fmt::format("{}: {} numbers, expected 2", fields.path("data_offsets"), offsets.size()));
    }
    fields.only();
    tensor.begin = offsets[0];
    tensor.end = offsets[1];
    in_context(shown(name_), [&] { check_bytes(tensor); });
    header_.tensors.push_back(std::move(tensor));
  }

  void read_metadata(const JsonFields& fields) {
    if (std::exchange(metadata_seen_, true)) {
      throw Error::input(fmt::format("header: key {} appears twice", kMetadataKey));
    }
    for (const auto& entry : fields.value().items()) {
      header_.metadata.emplace(entry.key(), fields.string(entry.key()));
    }
  }

  static void check_bytes(const SafetensorsTensor& tensor) {
    const std::string shape = tensor.spec.shape.to_string();
    const int64_t bytes = in_context("shape " + shape, [&] { return tensor.spec.bytes(); });
    if (tensor.end < tensor.begin) {
      throw Error::input(
          fmt::format("data_offsets: end {} lies before begin {}", tensor.end, tensor.begin));
    }
    if (tensor.end - tensor.begin != bytes) {
      throw Error::input(fmt::format("{} {} needs {} bytes, its data_offsets span {}",
                                     dtype_name(tensor.spec.dtype), shape, bytes,
                                     tensor.end - tensor.begin));
    }
  }

  SafetensorsHeader& header_;
  std::string name_;  // of the member that is being read
  int64_t keys_ = 0;  // in it, so far
  bool metadata_seen_ = false;
};

void check_unique_names(const std::vector<SafetensorsTensor>& tensors) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const SafetensorsTensor& tensor : tensors) names.push_back(tensor.name);
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice != names.end()) {
    throw Error::input(fmt::format("{}: tensor name appears twice in the header", shown(*twice)));
  }
}

// Tensors sorted by offset must follow each other and end with the file.
void check_tiling(const std::vector<SafetensorsTensor>& tensors, int64_t data_size) {
  int64_t position = 0;
  const SafetensorsTensor* previous = nullptr;
  for (const SafetensorsTensor& tensor : tensors) {
    if (tensor.begin > position) {
      throw Error::input(fmt::format("{}: a gap of {} bytes lies before its data",
                                     shown(tensor.name), tensor.begin - position));
    }
    if (tensor.begin < position) {
      throw Error::input(fmt::format("{}: its data overlaps the data of {} by {} bytes",
                                     shown(tensor.name), in_quotes(previous->name),
                                     position - tensor.begin));
    }
    if (tensor.end > data_size) {
      throw Error::input(
          fmt::format("{}: its data ends at byte {}, but the file holds only {} bytes "
                      "of data",
                      shown(tensor.name), tensor.end, data_size))
          .hint("the file may be truncated");
    }
    position = tensor.end;
    previous = &tensor;
  }
  if (position != data_size) {
    throw Error::input(
        fmt::format("{} bytes follow the data of the last tensor", data_size - position));
  }
}

std::string json_string(const std::string& text) { return nlohmann::json(text).dump(); }

void append_json(std::string& json, const SafetensorsTensor& tensor) {
  json += fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                      json_string(tensor.name), dtype_name(tensor.spec.dtype),
                      fmt::join(tensor.spec.shape.dims(), ","), tensor.begin, tensor.end);
}

}  // namespace

bool begins_as_safetensors(ConstBytes front) {
  constexpr auto kLength = static_cast<size_t>(kSafetensorsLengthBytes);
  return front.size() > kLength && static_cast<char>(front[kLength]) == '{' &&
         std::ranges::count(front.first(kLength), std::byte{0}) > 0;
}

SafetensorsHeader parse_safetensors_header(ConstBytes front, int64_t file_size) {
  if (file_size < kSafetensorsLengthBytes) {
    throw Error::input(
        fmt::format("not a safetensors file: {} bytes, the header's length "
                    "takes {}",
                    file_size, kSafetensorsLengthBytes));
  }
  const auto require_front = [&](int64_t bytes) {
    if (static_cast<int64_t>(front.size()) >= bytes) return;
    throw Error::input(
        fmt::format("the header needs {} bytes, its frame has {}", bytes, front.size()));
  };
  require_front(kSafetensorsLengthBytes);
  uint64_t length = 0;
  for (size_t i = 0; i < static_cast<size_t>(kSafetensorsLengthBytes); ++i) {
    length |= static_cast<uint64_t>(front[i]) << (8 * i);
  }
  if (length > static_cast<uint64_t>(kMaxSafetensorsHeader)) {
    if (is_lfs_pointer({reinterpret_cast<const char*>(front.data()), front.size()})) {
      throw Error::input(kLfsPointer).hint(kFetchLfs);
    }
    throw Error::input(
        fmt::format("header length {}, at most {} is allowed", length, kMaxSafetensorsHeader));
  }
  SafetensorsHeader header;
  header.data_start = kSafetensorsLengthBytes + static_cast<int64_t>(length);
  if (header.data_start > file_size) {
    throw Error::input(fmt::format("header length {} runs past the end of the file of {} bytes",
                                   length, file_size))
        .hint("the file may be truncated");
  }
  require_front(header.data_start);
  const std::string_view json(reinterpret_cast<const char*>(front.data()) + kSafetensorsLengthBytes,
                              static_cast<size_t>(length));
  in_context("header", [&] { check_json_text(json); });
  if (!json.starts_with('{')) throw Error::input("header does not begin with a JSON object");
  HeaderReader(header).read(json);
  check_unique_names(header.tensors);
  std::ranges::sort(header.tensors, {}, [](const SafetensorsTensor& tensor) {
    return std::tie(tensor.begin, tensor.end, tensor.name);
  });
  check_tiling(header.tensors, file_size - header.data_start);
  return header;
}

void append_tensor(std::vector<SafetensorsTensor>& tensors, std::string name, TensorSpec spec) {
  const int64_t begin = tensors.empty() ? 0 : tensors.back().end;
  const int64_t end = checked_add(begin, spec.bytes());
  tensors.push_back({.name = std::move(name), .spec = spec, .begin = begin, .end = end});
}

std::string make_safetensors_header(std::span<const SafetensorsTensor> tensors,
                                    const std::map<std::string, std::string>& metadata,
                                    int64_t align) {
  std::string json = "{";
  try {
    for (const auto& [key, value] : metadata) {
      json += json.size() == 1 ? fmt::format("\"{}\":{{", kMetadataKey) : ",";
      json += json_string(key) + ":" + json_string(value);
    }
    if (!metadata.empty()) json += '}';
    int64_t position = 0;
    for (const SafetensorsTensor& tensor : tensors) {
      if (tensor.begin != position || tensor.end - tensor.begin != tensor.spec.bytes()) {
        throw Error::internal(fmt::format("{}: wrong data offsets", shown(tensor.name)));
      }
      position = tensor.end;
      if (json.size() > 1) json += ',';
      append_json(json, tensor);
    }
  } catch (const nlohmann::json::exception&) {
    throw Error::internal("a safetensors header needs names and metadata in UTF-8");
  }
  json += '}';
  const int64_t total =
      round_up(kSafetensorsLengthBytes + static_cast<int64_t>(json.size()), align);
  const int64_t length = total - kSafetensorsLengthBytes;
  if (length > kMaxSafetensorsHeader) {
    throw Error::internal(fmt::format("a safetensors header of {} bytes, at most {} is allowed",
                                      length, kMaxSafetensorsHeader));
  }
  json.resize(static_cast<size_t>(length), ' ');
  std::string out;
  for (int i = 0; i < static_cast<int>(kSafetensorsLengthBytes); ++i) {
    out += static_cast<char>((static_cast<uint64_t>(length) >> (8 * i)) & 0xFF);
  }
  return out + json;
}

}  // namespace mxfp4
