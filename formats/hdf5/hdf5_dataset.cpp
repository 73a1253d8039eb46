#include "formats/hdf5/hdf5_dataset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>

#include "lib/core/error.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {
namespace {

constexpr size_t kMaxStringBytes = 16 << 20;

// ---- element types

struct ElementType {
  DType dtype = DType::kU8;
  bool big_endian = false;
};

struct FloatRow {
  size_t bytes;
  size_t exponent_bits;
  size_t exponent_bias;
  DType dtype;
};
constexpr std::array kFloats = {
    FloatRow{2, 5, 15, DType::kF16},
    FloatRow{2, 8, 127, DType::kBF16},
    FloatRow{4, 8, 127, DType::kF32},
    FloatRow{8, 11, 1023, DType::kF64},
};

// A 16-bit integer holds the bits of a BF16 unless the dataset's attribute "dtype" says otherwise.
struct IntegerRow {
  size_t bytes;
  DType unsigned_type;
  DType signed_type;
};
constexpr std::array kIntegers = {
    IntegerRow{1, DType::kU8, DType::kI8},
    IntegerRow{2, DType::kBF16, DType::kBF16},
    IntegerRow{4, DType::kU32, DType::kI32},
    IntegerRow{8, DType::kU64, DType::kI64},
};

std::string_view class_name(H5T_class_t type_class) {
  switch (type_class) {
    case H5T_STRING:
      return "string";
    case H5T_COMPOUND:
      return "compound";
    case H5T_ENUM:
      return "enum";
    case H5T_REFERENCE:
      return "reference";
    case H5T_VLEN:
      return "variable-length";
    case H5T_ARRAY:
      return "array";
    case H5T_OPAQUE:
      return "opaque";
    case H5T_BITFIELD:
      return "bit field";
    default:
      return "unknown";
  }
}

DType integer_type(hid_t type) {
  const auto row = std::ranges::find(kIntegers, H5Tget_size(type), &IntegerRow::bytes);
  if (row == kIntegers.end() || H5Tget_precision(type) != 8 * row->bytes ||
      H5Tget_offset(type) != 0) {
    throw Error::input("element type: an integer that is not of 8, 16, 32 or 64 full bits");
  }
  return H5Tget_sign(type) == H5T_SGN_NONE ? row->unsigned_type : row->signed_type;
}

DType float_type(hid_t type) {
  size_t sign = 0, exponent = 0, exponent_bits = 0, mantissa = 0, mantissa_bits = 0;
  hdf5_check(H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits),
             "element type cannot be read");
  for (const FloatRow& row : kFloats) {
    const bool same = H5Tget_size(type) == row.bytes && H5Tget_precision(type) == 8 * row.bytes &&
                      exponent_bits == row.exponent_bits &&
                      H5Tget_ebias(type) == row.exponent_bias && sign == 8 * row.bytes - 1 &&
                      exponent == sign - exponent_bits && mantissa == 0 &&
                      mantissa_bits == exponent && H5Tget_norm(type) == H5T_NORM_IMPLIED;
    if (same) return row.dtype;
  }
  throw Error::input("element type: a float that is neither IEEE nor BF16");
}

ElementType element_type(hid_t dataset) {
  const Hdf5Handle type(H5Dget_type(dataset), H5Tclose, "element type cannot be read");
  const H5T_class_t type_class = H5Tget_class(type.get());
  ElementType element;
  if (type_class == H5T_INTEGER) {
    element.dtype = integer_type(type.get());
  } else if (type_class == H5T_FLOAT) {
    element.dtype = float_type(type.get());
  } else {
    throw Error::input(
        fmt::format("element type: {}, expected integers or floats", class_name(type_class)));
  }
  const H5T_order_t order = H5Tget_order(type.get());
  if (order != H5T_ORDER_LE && order != H5T_ORDER_BE && order != H5T_ORDER_NONE) {
    throw Error::input("element type: byte order is neither little- nor big-endian");
  }
  element.big_endian = order == H5T_ORDER_BE && dtype_bytes(element.dtype) > 1;

  const auto stated = read_hdf5_string(dataset, "dtype");
  if (!stated) return element;
  const auto dtype = dtype_from_name(*stated);
  if (!dtype)
    throw Error::input(fmt::format("attribute dtype: unknown dtype {}", in_quotes(*stated)));
  const bool reinterpreted = type_class == H5T_INTEGER && dtype_bits(*dtype) % 8 == 0 &&
                             dtype_bits(*dtype) == dtype_bits(element.dtype);
  if (*dtype != element.dtype && !reinterpreted) {
    throw Error::input(fmt::format("attribute dtype: {}, but the elements are stored as {}",
                                   *stated, dtype_name(element.dtype)));
  }
  element.dtype = *dtype;
  return element;
}

// ---- shapes

int64_t as_size(uint64_t value, std::string_view what) {
  if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    throw Error::input(fmt::format("{} {} is too large", what, value));
  }
  return static_cast<int64_t>(value);
}

Shape dataset_shape(hid_t dataset) {
  const Hdf5Handle space(H5Dget_space(dataset), H5Sclose, "shape cannot be read");
  const H5S_class_t kind = H5Sget_simple_extent_type(space.get());
  if (kind == H5S_SCALAR) return {};
  if (kind != H5S_SIMPLE) throw Error::input("shape: none (a null dataspace)");
  std::array<hsize_t, H5S_MAX_RANK> dims{};
  const int rank = H5Sget_simple_extent_ndims(space.get());
  if (rank < 0 || rank > Shape::kMaxRank) {
    throw Error::input(fmt::format("shape: {} dimensions, at most {} are supported", rank,
                                   static_cast<int>(Shape::kMaxRank)));
  }
  hdf5_check(H5Sget_simple_extent_dims(space.get(), dims.data(), nullptr), "shape cannot be read");
  std::vector<int64_t> out;
  for (int axis = 0; axis < rank; ++axis) {
    out.push_back(as_size(dims[static_cast<size_t>(axis)], "dimension"));
    if (out.back() == 0) throw Error::input("shape: a dimension of 0");
  }
  return Shape(out);
}

// ---- storage

void describe_contiguous(Hdf5Dataset& out, hid_t dataset) {
  const int64_t bytes = out.spec.bytes();
  const haddr_t address = H5Dget_offset(dataset);
  if (address == HADDR_UNDEF) throw Error::input("no data: the dataset was never written");
  const hsize_t stored = H5Dget_storage_size(dataset);
  if (stored != static_cast<hsize_t>(bytes)) {
    throw Error::input(fmt::format("{} bytes are stored, {} {} needs {}", stored,
                                   dtype_name(out.spec.dtype), out.spec.shape.to_string(), bytes));
  }
  out.file_offset = as_size(address, "address");
}

std::vector<Hdf5Filter> read_filters(hid_t properties) {
  std::vector<Hdf5Filter> filters;
  const int count = hdf5_check(H5Pget_nfilters(properties), "filters cannot be read");
  for (int i = 0; i < count; ++i) {
    unsigned flags = 0, config = 0;
    size_t num_params = 32;
    std::array<unsigned, 32> params{};
    std::array<char, 80> name{};
    const H5Z_filter_t id =
        hdf5_check(H5Pget_filter2(properties, static_cast<unsigned>(i), &flags, &num_params,
                                  params.data(), name.size() - 1, name.data(), &config),
                   "filters cannot be read");
    check_hdf5_filter(id, shown(name.data()));
    const size_t kept = std::min(num_params, params.size());
    filters.push_back({.id = id, .params = {params.begin(), params.begin() + kept}});
  }
  return filters;
}

// One element of the fill value; empty if the file leaves missing chunks undefined.
std::vector<std::byte> read_fill(hid_t dataset, hid_t properties, size_t element_bytes) {
  H5D_fill_value_t status = H5D_FILL_VALUE_ERROR;
  hdf5_check(H5Pfill_value_defined(properties, &status), "fill value cannot be read");
  if (status == H5D_FILL_VALUE_UNDEFINED) return {};
  const Hdf5Handle type(H5Dget_type(dataset), H5Tclose, "element type cannot be read");
  std::vector<std::byte> fill(element_bytes);
  hdf5_check(H5Pget_fill_value(properties, type.get(), fill.data()), "fill value cannot be read");
  return fill;
}

std::vector<int64_t> read_chunk_shape(hid_t properties, int rank) {
  std::array<hsize_t, H5S_MAX_RANK> dims{};
  const int of_chunks = H5Pget_chunk(properties, H5S_MAX_RANK, dims.data());
  if (rank == 0 || of_chunks != rank) {
    throw Error::input(
        fmt::format("chunk shape: {} dimensions, the dataset has {}", of_chunks, rank));
  }
  std::vector<int64_t> shape;
  shape.reserve(static_cast<size_t>(rank));
  for (int axis = 0; axis < rank; ++axis) {
    shape.push_back(as_size(dims[static_cast<size_t>(axis)], "chunk dimension"));
  }
  return shape;
}

// Where each chunk of the grid is stored.
std::vector<Hdf5Chunk> find_chunks(const Hdf5Dataset& description, hid_t dataset,
                                   const Hdf5ChunkFinder& finder,
                                   const std::function<void()>& alive) {
  constexpr size_t kLookupsBetweenSigns = 4096;
  std::vector<Hdf5Chunk> chunks(static_cast<size_t>(description.num_chunks()));
  const size_t rank = description.chunk_shape.size();
  std::vector<hsize_t> origin(rank, 0);
  for (size_t i = 0; i < chunks.size(); ++i) {
    if (i % kLookupsBetweenSigns == 0) alive();
    if (const auto place = finder.find(dataset, origin.data())) {
      chunks[i] = {.address = as_size(place->address, "chunk address"),
                   .size = as_size(place->size, "chunk size"),
                   .skipped = place->skipped};
    }
    for (size_t axis = rank; axis-- > 0;) {  // the next chunk, last axis first
      origin[axis] += static_cast<hsize_t>(description.chunk_shape[axis]);
      if (origin[axis] < static_cast<hsize_t>(description.spec.shape[static_cast<int>(axis)]))
        break;
      origin[axis] = 0;
    }
  }
  return chunks;
}

void describe_chunked(Hdf5Dataset& out, hid_t dataset, hid_t properties,
                      const Hdf5ChunkFinder& finder, const std::function<void()>& alive) {
  out.chunk_shape = read_chunk_shape(properties, out.spec.shape.rank());
  out.check_chunk_grid();
  unsigned options = 0;
  hdf5_check(H5Pget_chunk_opts(properties, &options), "chunk options cannot be read");
  out.filters = read_filters(properties);
  if ((options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS) != 0 && !out.filters.empty()) {
    throw Error::input("filters that leave out partial edge chunks are not supported");
  }
  if (H5Dget_storage_size(dataset) == 0) {
    throw Error::input("no data: the dataset was never written");
  }
  out.fill = read_fill(dataset, properties, static_cast<size_t>(dtype_bytes(out.spec.dtype)));
  out.chunks = find_chunks(out, dataset, finder, alive);
}

// ---- attributes

std::string read_variable_string(hid_t attribute, hid_t memory_type) {
  char* raw = nullptr;
  hdf5_check(H5Aread(attribute, memory_type, &raw), "attribute cannot be read");
  const std::unique_ptr<char, herr_t (*)(void*)> text(raw, H5free_memory);
  return text == nullptr ? std::string() : std::string(text.get());
}

std::string read_fixed_string(hid_t attribute, hid_t type) {
  const size_t size = H5Tget_size(type);
  if (size > kMaxStringBytes) {
    throw Error::input(
        fmt::format("attribute of {} bytes, at most {} are read", size, kMaxStringBytes));
  }
  std::string text(size, '\0');
  hdf5_check(H5Aread(attribute, type, text.data()), "attribute cannot be read");
  text.resize(std::min(text.find('\0'), text.size()));
  if (H5Tget_strpad(type) == H5T_STR_SPACEPAD) text.resize(text.find_last_not_of(' ') + 1);
  return text;
}

}  // namespace

std::optional<std::string> read_hdf5_attribute(hid_t attribute) {
  const Hdf5Handle type(H5Aget_type(attribute), H5Tclose, "attribute cannot be read");
  const Hdf5Handle space(H5Aget_space(attribute), H5Sclose, "attribute cannot be read");
  if (H5Sget_simple_extent_npoints(space.get()) != 1) return std::nullopt;
  const H5T_class_t type_class = H5Tget_class(type.get());
  if (type_class == H5T_INTEGER) {
    int64_t value = 0;
    hdf5_check(H5Aread(attribute, H5T_NATIVE_INT64, &value), "attribute cannot be read");
    return fmt::format("{}", value);
  }
  if (type_class != H5T_STRING) return std::nullopt;
  const bool variable = hdf5_check(H5Tis_variable_str(type.get()), "attribute cannot be read") > 0;
  return variable ? read_variable_string(attribute, type.get())
                  : read_fixed_string(attribute, type.get());
}

std::optional<std::string> read_hdf5_string(hid_t object, const char* name) {
  if (hdf5_check(H5Aexists(object, name), "attributes cannot be read") == 0) return std::nullopt;
  const Hdf5Handle attribute(H5Aopen(object, name, H5P_DEFAULT), H5Aclose,
                             "attribute cannot be opened");
  auto text = read_hdf5_attribute(attribute.get());
  if (!text) throw Error::input(fmt::format("attribute {}: not a string", name));
  return text;
}

bool hdf5_holds_numbers(hid_t dataset) {
  const Hdf5Handle type(H5Dget_type(dataset), H5Tclose, "element type cannot be read");
  const H5T_class_t type_class = H5Tget_class(type.get());
  return type_class == H5T_INTEGER || type_class == H5T_FLOAT;
}

Hdf5Dataset describe_hdf5_dataset(hid_t dataset, const Hdf5ChunkFinder& finder,
                                  const std::function<void()>& alive) {
  Hdf5Dataset out;
  const ElementType element = element_type(dataset);
  out.spec = {element.dtype, dataset_shape(dataset)};
  out.big_endian = element.big_endian;
  (void)in_context("shape " + out.spec.shape.to_string(), [&] { return out.spec.bytes(); });
  const Hdf5Handle properties(H5Dget_create_plist(dataset), H5Pclose, "storage cannot be read");
  if (H5Pget_external_count(properties.get()) != 0) {
    throw Error::input("storage: external files are not followed");
  }
  switch (H5Pget_layout(properties.get())) {
    case H5D_CONTIGUOUS:
      describe_contiguous(out, dataset);
      break;
    case H5D_CHUNKED:
      describe_chunked(out, dataset, properties.get(), finder, alive);
      break;
    case H5D_VIRTUAL:
      throw Error::input("storage: virtual datasets are not supported");
    default:
      throw Error::input("storage: neither contiguous nor chunked");
  }
  return out;
}

}  // namespace mxfp4
