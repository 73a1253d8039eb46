// Each value is a text that a NUL ends; the first one of a piece says what it is.
#include "formats/hdf5/hdf5_index.hpp"

#include <fmt/format.h>

#include <charconv>
#include <initializer_list>
#include <limits>
#include <utility>

#include "lib/core/error.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {
namespace {

constexpr std::string_view kAttribute = "attribute";
constexpr std::string_view kDataset = "dataset";
constexpr std::string_view kPassedOver = "passed over";

std::string fields(std::initializer_list<std::string_view> texts) {
  std::string out;
  for (std::string_view text : texts) {
    out += text;
    out += '\0';
  }
  return out;
}

[[noreturn]] void refuse_index() { throw Error::input("the HDF5 library gave a damaged index"); }

class FieldReader {
 public:
  explicit FieldReader(std::string_view in) : in_(in) {}
  [[nodiscard]] bool done() const { return in_.empty(); }
  std::string text() {
    const size_t end = in_.find('\0');
    if (end == std::string_view::npos) refuse_index();
    std::string out(in_.substr(0, end));
    in_.remove_prefix(end + 1);
    return out;
  }
  // From `least` to `most`.
  int64_t number(int64_t least, int64_t most = std::numeric_limits<int64_t>::max()) {
    const std::string digits = text();
    int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size()) refuse_index();
    if (value < least || value > most) refuse_index();
    return value;
  }

 private:
  std::string_view in_;
};

Hdf5Dataset read_dataset(FieldReader& in) {
  Hdf5Dataset dataset;
  dataset.name = in.text();
  const auto dtype = dtype_from_name(in.text());
  if (!dtype) refuse_index();
  dataset.number = in.number(0);
  dataset.file_offset = in.number(-1);
  std::vector<int64_t> dims(static_cast<size_t>(in.number(0, Shape::kMaxRank)));
  for (int64_t& dim : dims) dim = in.number(1);
  dataset.spec = {*dtype, Shape(dims)};
  return dataset;
}

}  // namespace

void Hdf5Dataset::check(int64_t file_size) const {
  check_tensor_name(name);
  const int64_t bytes = in_context("shape " + spec.shape.to_string(), [&] { return spec.bytes(); });
  if (dtype_bits(spec.dtype) % 8 != 0) throw Error::input("dtype of less than a byte");
  if (file_offset >= 0 && (bytes > file_size || file_offset > file_size - bytes)) {
    throw Error::input("its data runs past the end of the file").hint("the file may be truncated");
  }
}

std::string encode_hdf5_attribute(std::string_view key, std::string_view value) {
  return fields({kAttribute, key, value});
}

std::string encode_hdf5_dataset(const Hdf5Dataset& dataset) {
  std::string out = fields({kDataset, dataset.name, dtype_name(dataset.spec.dtype)});
  for (int64_t value : {dataset.number, dataset.file_offset, int64_t{dataset.spec.shape.rank()}}) {
    out += fields({fmt::format("{}", value)});
  }
  for (int64_t dim : dataset.spec.shape.dims()) out += fields({fmt::format("{}", dim)});
  return out;
}

std::string encode_hdf5_passed_over(std::string_view text) { return fields({kPassedOver, text}); }

Hdf5Index decode_hdf5_index(std::string_view bytes) {
  FieldReader in(bytes);
  Hdf5Index index;
  while (!in.done()) {
    const std::string kind = in.text();
    if (kind == kAttribute) {
      std::string key = in.text();
      index.attributes[std::move(key)] = in.text();
    } else if (kind == kDataset) {
      index.datasets.push_back(read_dataset(in));
    } else if (kind == kPassedOver) {
      index.passed_over.push_back(in.text());
    } else {
      refuse_index();
    }
  }
  return index;
}

}  // namespace mxfp4
