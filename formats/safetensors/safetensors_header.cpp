#include "formats/safetensors/safetensors_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <tuple>
#include <utility>

#include "formats/json/strict_json.hpp"
#include "lib/core/checked.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {
namespace {

constexpr std::string_view kMetadataKey = "__metadata__";

// Receives the events of the JSON parser and fills a header. The grammar is two levels deep, so a
// state replaces a tree of values: memory grows with the tensors only, and what does not belong is
// refused as soon as it is met.
class HeaderHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderHandler(std::string_view text, SafetensorsHeader& header) : text_(text), header_(header) {}

  bool start_object(size_t /*size*/) override {
    switch (state_) {
      case State::kStart:
        return go(State::kRoot);
      case State::kTensorValue:
        seen_ = {};
        dims_.clear();
        return go(State::kTensor);
      case State::kMetadataValue:
        return go(State::kMetadata);
      default:
        return refuse("an object");
    }
  }

  bool end_object() override {
    if (state_ == State::kRoot) return go(State::kEnd);
    if (state_ == State::kTensor) finish_tensor();
    return go(State::kRoot);
  }

  bool key(string_t& text) override {
    if (state_ == State::kRoot) return root_key(text);
    if (state_ == State::kTensor) return tensor_key(text);
    metadata_key_ = std::move(text);
    return go(State::kMetadataString);
  }

  bool string(string_t& text) override {
    if (state_ == State::kDType) return read_dtype(text);
    if (state_ != State::kMetadataString) return refuse("a string");
    if (std::ssize(header_.metadata) == kMaxSafetensorsMetadata) {
      throw Error::input(
          fmt::format("{}: more than {} entries", kMetadataKey, kMaxSafetensorsMetadata));
    }
    if (!header_.metadata.emplace(metadata_key_, std::move(text)).second) {
      throw Error::input(
          fmt::format("{}: key {} appears twice", kMetadataKey, in_quotes(metadata_key_)));
    }
    return go(State::kMetadata);
  }

  bool start_array(size_t /*size*/) override {
    if (state_ == State::kShape) return go(State::kShapeItem);
    if (state_ == State::kOffsets) return go(State::kOffsetsItem);
    return refuse("an array");
  }

  bool end_array() override {
    if (state_ == State::kOffsetsItem && num_offsets_ != 2) {
      throw in_tensor("data_offsets", fmt::format("{} numbers, expected 2", num_offsets_));
    }
    return go(State::kTensor);
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<number_unsigned_t>(std::numeric_limits<int64_t>::max())) {
      return refuse(fmt::format("{}", value));
    }
    const auto number = static_cast<int64_t>(value);
    if (state_ == State::kShapeItem) return read_dim(number);
    if (state_ == State::kOffsetsItem) return read_offset(number);
    return refuse("a number");
  }

  bool number_integer(number_integer_t value) override { return refuse(fmt::format("{}", value)); }
  bool number_float(number_float_t /*value*/, const string_t& text) override {
    return refuse(text.substr(0, 40));
  }
  bool null() override { return refuse("null"); }
  bool boolean(bool value) override { return refuse(value ? "true" : "false"); }
  bool binary(binary_t& /*value*/) override { return refuse("binary data"); }
  bool parse_error(size_t /*position*/, const std::string& /*last_token*/,
                   const nlohmann::json::exception& error) override {
    in_context("header", [&] { throw not_json(text_, error); });
    return false;
  }

 private:
  enum class State {
    kStart,
    kRoot,           // between the members of the outer object
    kTensorValue,    // after a tensor's name
    kTensor,         // between the members of a tensor
    kDType,          // after "dtype"
    kShape,          // after "shape"
    kShapeItem,      // inside its array
    kOffsets,        // after "data_offsets"
    kOffsetsItem,    // inside its array
    kMetadataValue,  // after "__metadata__"
    kMetadata,       // between its members
    kMetadataString,
    kEnd,
  };
  struct Seen {
    bool dtype = false;
    bool shape = false;
    bool offsets = false;
  };

  bool go(State next) {
    state_ = next;
    return true;
  }

  [[nodiscard]] Error in_tensor(std::string_view key, const std::string& message) const {
    return Error::input(fmt::format("{}: {}: {}", shown(tensor_.name), key, message));
  }

  // Throws Error::input: the format does not allow `found`, a kind of value, here.
  [[noreturn]] bool refuse(std::string_view found) const {
    switch (state_) {
      case State::kTensorValue:
        throw Error::input(
            fmt::format("{}: expected an object, found {}", shown(tensor_.name), found));
      case State::kDType:
        throw in_tensor("dtype", fmt::format("expected a string, found {}", found));
      case State::kShape:
        throw in_tensor("shape", fmt::format("expected an array, found {}", found));
      case State::kOffsets:
        throw in_tensor("data_offsets", fmt::format("expected an array, found {}", found));
      case State::kShapeItem:
        throw in_tensor("shape", fmt::format("expected non-negative integers, found {}", found));
      case State::kOffsetsItem:
        throw in_tensor("data_offsets",
                        fmt::format("expected non-negative integers, found {}", found));
      case State::kMetadataValue:
        throw Error::input(fmt::format("{}: expected an object, found {}", kMetadataKey, found));
      case State::kMetadataString:
        throw Error::input(fmt::format("{}: {}: expected a string, found {}", kMetadataKey,
                                       shown(metadata_key_), found));
      default:
        throw Error::input(fmt::format("header: expected a JSON object, found {}", found));
    }
  }

  bool root_key(string_t& text) {
    if (text != kMetadataKey) {
      check_tensor_name(text);
      tensor_ = {};
      tensor_.name = std::move(text);
      return go(State::kTensorValue);
    }
    if (std::exchange(metadata_seen_, true)) {
      throw Error::input(fmt::format("header: key {} appears twice", kMetadataKey));
    }
    return go(State::kMetadataValue);
  }

  bool tensor_key(const string_t& text) {
    if (text == "dtype") return member(seen_.dtype, text, State::kDType);
    if (text == "shape") return member(seen_.shape, text, State::kShape);
    if (text == "data_offsets") {
      num_offsets_ = 0;
      return member(seen_.offsets, text, State::kOffsets);
    }
    throw Error::input(fmt::format("{}: unknown key {}, expected dtype, shape and data_offsets",
                                   shown(tensor_.name), in_quotes(text)));
  }

  bool member(bool& seen, std::string_view name, State next) {
    if (std::exchange(seen, true)) throw in_tensor(name, "appears twice");
    return go(next);
  }

  bool read_dtype(const string_t& text) {
    const auto dtype = dtype_from_name(text);
    if (!dtype) throw in_tensor("dtype", fmt::format("unknown dtype {}", in_quotes(text)));
    tensor_.spec.dtype = *dtype;
    return go(State::kTensor);
  }

  bool read_dim(int64_t dim) {
    if (dims_.size() == Shape::kMaxRank) {
      throw in_tensor("shape",
                      fmt::format("more than {} dimensions", static_cast<int>(Shape::kMaxRank)));
    }
    dims_.push_back(dim);
    return true;
  }

  bool read_offset(int64_t offset) {
    if (num_offsets_ == 2) throw in_tensor("data_offsets", "more than 2 numbers, expected 2");
    (num_offsets_++ == 0 ? tensor_.begin : tensor_.end) = offset;
    return true;
  }

  void finish_tensor() {
    if (!seen_.dtype) throw in_tensor("dtype", "missing");
    if (!seen_.shape) throw in_tensor("shape", "missing");
    if (!seen_.offsets) throw in_tensor("data_offsets", "missing");
    in_context(shown(tensor_.name), [&] {
      tensor_.spec.shape = Shape(dims_);
      const int64_t bytes = in_context("shape " + tensor_.spec.shape.to_string(),
                                       [&] { return tensor_.spec.bytes(); });
      if (tensor_.end < tensor_.begin) {
        throw Error::input(
            fmt::format("data_offsets: end {} lies before begin {}", tensor_.end, tensor_.begin));
      }
      if (tensor_.end - tensor_.begin != bytes) {
        throw Error::input(fmt::format(
            "{} {} needs {} bytes, its data_offsets span {}", dtype_name(tensor_.spec.dtype),
            tensor_.spec.shape.to_string(), bytes, tensor_.end - tensor_.begin));
      }
    });
    header_.tensors.push_back(std::move(tensor_));
  }

  std::string_view text_;
  SafetensorsHeader& header_;
  State state_ = State::kStart;
  bool metadata_seen_ = false;
  std::string metadata_key_;
  SafetensorsTensor tensor_;
  Seen seen_;
  std::vector<int64_t> dims_;
  int num_offsets_ = 0;
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
  HeaderHandler handler(json, header);
  try {
    (void)nlohmann::json::sax_parse(json.begin(), json.end(), &handler);
  } catch (const nlohmann::json::exception&) {  // this handler raises none; a safeguard
    throw Error::input("header is not JSON");
  }
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
