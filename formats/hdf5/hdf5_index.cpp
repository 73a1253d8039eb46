#include "formats/hdf5/hdf5_index.hpp"

#include <nlohmann/json.hpp>

#include "formats/json/json_fields.hpp"
#include "formats/json/strict_json.hpp"
#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {

using nlohmann::json;

void Hdf5Dataset::check(int64_t file_size) const {
  check_tensor_name(name);
  const int64_t bytes = in_context("shape " + spec.shape.to_string(), [&] { return spec.bytes(); });
  if (bytes == 0) throw Error::input("shape: a dimension of 0");
  if (dtype_bits(spec.dtype) % 8 != 0) throw Error::input("dtype of less than a byte");
  if (file_offset >= 0 && (bytes > file_size || file_offset > file_size - bytes)) {
    throw Error::input("its data runs past the end of the file").hint("the file may be truncated");
  }
}

std::string encode_hdf5_index(const Hdf5Index& index) {
  json out = {{"attributes", index.attributes},
              {"datasets", json::array()},
              {"passed_over", index.passed_over}};
  for (const Hdf5Dataset& dataset : index.datasets) {
    json& entry = out["datasets"].emplace_back();
    entry = {{"name", dataset.name},
             {"dtype", dtype_name(dataset.spec.dtype)},
             {"number", dataset.number},
             {"shape", dataset.spec.shape.dims()}};
    if (dataset.file_offset >= 0) entry["file_offset"] = dataset.file_offset;
  }
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

Hdf5Index decode_hdf5_index(std::string_view bytes) {
  const json value = parse_strict_json(bytes);
  const JsonFields fields(value);
  Hdf5Index index;
  const JsonFields attributes = fields.object("attributes");
  for (const auto& item : attributes.value().items()) {
    index.attributes[item.key()] = attributes.string(item.key());
  }
  fields.each("datasets", [&](const JsonFields& entry) {
    const auto dtype = dtype_from_name(entry.string("dtype"));
    if (!dtype) throw Error::input("unknown dtype");
    index.datasets.push_back({.name = entry.string("name"),
                              .spec = {*dtype, Shape(entry.integers("shape"))},
                              .number = entry.integer("number")});
    if (entry.has("file_offset")) index.datasets.back().file_offset = entry.integer("file_offset");
  });
  index.passed_over = fields.strings("passed_over");
  return index;
}

}  // namespace mxfp4
