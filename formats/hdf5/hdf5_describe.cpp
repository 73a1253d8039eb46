#include "formats/hdf5/hdf5_describe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "formats/hdf5/hdf5_handle.hpp"
#include "lib/core/checked.hpp"
#include "lib/core/dtype.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {
namespace {

// Chunks are decoded whole, so they must fit in memory. Bytes.
constexpr int64_t kMaxChunk = int64_t{256} << 20;
constexpr std::array<H5Z_filter_t, 4> kFilters = {H5Z_FILTER_DEFLATE, H5Z_FILTER_SHUFFLE,
                                                  H5Z_FILTER_FLETCHER32, kZstdFilter};

// ---- element types

// A float of two bytes; the library has no names for them.
hid_t float16(unsigned mantissa_bits) {
  const hid_t type = H5Tcopy(H5T_IEEE_F32LE);
  H5Tset_fields(type, 15, mantissa_bits, 15 - mantissa_bits, 0, mantissa_bits);
  H5Tset_size(type, 2);
  H5Tset_ebias(type, (size_t{1} << (14 - mantissa_bits)) - 1);
  return type;
}

// A 16-bit integer holds the bits of a BF16 unless the dataset's attribute "dtype" says otherwise.
DType stored_type(hid_t type) {
  static const std::array<std::pair<hid_t, DType>, 12> kTypes = {{{H5T_STD_U8LE, DType::kU8},
                                                                  {H5T_STD_I8LE, DType::kI8},
                                                                  {H5T_STD_U16LE, DType::kBF16},
                                                                  {H5T_STD_I16LE, DType::kBF16},
                                                                  {H5T_STD_U32LE, DType::kU32},
                                                                  {H5T_STD_I32LE, DType::kI32},
                                                                  {H5T_STD_U64LE, DType::kU64},
                                                                  {H5T_STD_I64LE, DType::kI64},
                                                                  {H5T_IEEE_F32LE, DType::kF32},
                                                                  {H5T_IEEE_F64LE, DType::kF64},
                                                                  {float16(7), DType::kBF16},
                                                                  {float16(10), DType::kF16}}};
  const Hdf5Handle little(H5Tcopy(type), H5Tclose, "element type cannot be read");
  hdf5_check(H5Tset_order(little.get(), H5T_ORDER_LE), "element type cannot be read");
  for (const auto& [known, dtype] : kTypes) {
    if (H5Tequal(little.get(), known) > 0) return dtype;
  }
  throw Error::input("element type: neither full integers, IEEE floats nor BF16");
}

// `stated`: the dataset's attribute "dtype".
DType element_type(hid_t type, const std::optional<std::string>& stated) {
  const bool integer = H5Tget_class(type) == H5T_INTEGER;
  if (!integer && H5Tget_class(type) != H5T_FLOAT) {
    throw Error::input("element type: neither integers nor floats");
  }
  const DType stored = stored_type(type);
  if (!stated) return stored;
  const auto dtype = dtype_from_name(*stated);
  if (!dtype) {
    throw Error::input(fmt::format("attribute dtype: unknown dtype {}", in_quotes(*stated)));
  }
  const bool reinterpreted = integer && dtype_bits(*dtype) == dtype_bits(stored);
  if (*dtype != stored && !reinterpreted) {
    throw Error::input(fmt::format("attribute dtype: {}, but the elements are stored as {}",
                                   *stated, dtype_name(stored)));
  }
  return *dtype;
}

// ---- shapes and storage

Shape shape_of(std::span<const hsize_t> dims) {
  std::vector<int64_t> out;
  for (const hsize_t dim : dims) {
    if (dim == 0) throw Error::input("shape: a dimension of 0");
    out.push_back(static_cast<int64_t>(dim));  // Shape refuses what becomes negative
  }
  return Shape(out);
}

// Throws Error::input for chunks that cannot be read.
void check_chunks(hid_t properties, std::span<const hsize_t> dims, size_t width) {
  std::vector<hsize_t> chunk(dims.size());
  const auto rank = static_cast<int>(dims.size());
  if (rank == 0 || H5Pget_chunk(properties, rank, chunk.data()) != rank) {
    throw Error::input("chunk shape: not as many dimensions as the dataset has");
  }
  const int64_t bytes = checked_mul(shape_of(chunk).elements(), static_cast<int64_t>(width));
  if (bytes > kMaxChunk) {
    throw Error::input(
        fmt::format("chunks of {} bytes, at most {} are supported", bytes, kMaxChunk))
        .hint("rewrite the file with smaller chunks");
  }
  const int count = hdf5_check(H5Pget_nfilters(properties), "filters cannot be read");
  for (int i = 0; i < count; ++i) {
    std::array<char, 80> name{};
    unsigned flags = 0;
    size_t parameters = 0;
    const H5Z_filter_t id =
        H5Pget_filter2(properties, static_cast<unsigned>(i), &flags, &parameters, nullptr,
                       name.size() - 1, name.data(), nullptr);
    if (std::ranges::find(kFilters, id) != kFilters.end()) continue;
    throw Error::input(fmt::format("filter {} ({}) is not supported", id,
                                   name[0] == '\0' ? "unnamed" : shown(name.data())))
        .hint("rewrite the file with deflate (gzip)");
  }
}

}  // namespace

std::optional<std::string> read_attribute(hid_t attribute) {
  constexpr std::string_view kFailed = "attribute cannot be read";
  const Hdf5Handle type(H5Aget_type(attribute), H5Tclose, kFailed);
  const Hdf5Handle space(H5Aget_space(attribute), H5Sclose, kFailed);
  if (H5Sget_simple_extent_npoints(space.get()) != 1) return std::nullopt;
  const H5T_class_t type_class = H5Tget_class(type.get());
  if (type_class == H5T_INTEGER) {
    int64_t value = 0;
    hdf5_check(H5Aread(attribute, H5T_NATIVE_INT64, &value), kFailed);
    return fmt::format("{}", value);
  }
  if (type_class != H5T_STRING) return std::nullopt;
  if (hdf5_check(H5Tis_variable_str(type.get()), kFailed) > 0) {
    char* raw = nullptr;
    hdf5_check(H5Aread(attribute, type.get(), &raw), kFailed);
    const std::unique_ptr<char, herr_t (*)(void*)> text(raw, H5free_memory);
    return text == nullptr ? std::string() : std::string(text.get());
  }
  std::string text(H5Tget_size(type.get()), '\0');
  hdf5_check(H5Aread(attribute, type.get(), text.data()), kFailed);
  text.resize(std::min(text.find('\0'), text.size()));
  if (H5Tget_strpad(type.get()) == H5T_STR_SPACEPAD) text.resize(text.find_last_not_of(' ') + 1);
  return text;
}

std::vector<hsize_t> dims_of(hid_t space) {
  const H5S_class_t kind = H5Sget_simple_extent_type(space);
  if (kind == H5S_SCALAR) return {};
  if (kind != H5S_SIMPLE) throw Error::input("shape: none (a null dataspace)");
  const int rank = hdf5_check(H5Sget_simple_extent_ndims(space), "shape cannot be read");
  if (rank > Shape::kMaxRank) {
    throw Error::input(fmt::format("shape: {} dimensions, at most {} are supported", rank,
                                   static_cast<int>(Shape::kMaxRank)));
  }
  std::vector<hsize_t> dims(static_cast<size_t>(rank));
  hdf5_check(H5Sget_simple_extent_dims(space, dims.data(), nullptr), "shape cannot be read");
  return dims;
}

bool is_big_endian(hid_t type) {
  return H5Tget_order(type) == H5T_ORDER_BE && H5Tget_size(type) > 1;
}

Hdf5Dataset describe_hdf5(hid_t dataset, hid_t type) {
  std::optional<std::string> stated;
  if (hdf5_check(H5Aexists(dataset, "dtype"), "attributes cannot be read") > 0) {
    const Hdf5Handle attribute(H5Aopen(dataset, "dtype", H5P_DEFAULT), H5Aclose,
                               "attribute cannot be opened");
    stated = read_attribute(attribute.get()).value_or("");
  }
  const Hdf5Handle space(H5Dget_space(dataset), H5Sclose, "shape cannot be read");
  const std::vector<hsize_t> dims = dims_of(space.get());
  Hdf5Dataset out{.name = {}, .spec = {element_type(type, stated), shape_of(dims)}};
  const int64_t bytes =
      in_context("shape " + out.spec.shape.to_string(), [&] { return out.spec.bytes(); });

  const Hdf5Handle properties(H5Dget_create_plist(dataset), H5Pclose, "storage cannot be read");
  if (H5Pget_external_count(properties.get()) != 0) {
    throw Error::input("storage: external files are not followed");
  }
  const H5D_layout_t layout = H5Pget_layout(properties.get());
  if (layout == H5D_VIRTUAL) throw Error::input("storage: virtual datasets are not supported");
  const hsize_t stored = H5Dget_storage_size(dataset);
  if (layout == H5D_CHUNKED) {
    check_chunks(properties.get(), dims, H5Tget_size(type));
    if (stored == 0) throw Error::input("no data: the dataset was never written");
  } else if (stored != static_cast<hsize_t>(bytes)) {
    throw Error::input(fmt::format("{} bytes are stored, {} {} needs {}", stored,
                                   dtype_name(out.spec.dtype), out.spec.shape.to_string(), bytes));
  } else if (layout == H5D_CONTIGUOUS && !is_big_endian(type)) {
    out.file_offset = static_cast<int64_t>(H5Dget_offset(dataset));
  }
  return out;
}

}  // namespace mxfp4
