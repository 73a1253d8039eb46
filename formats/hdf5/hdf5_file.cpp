#include "formats/hdf5/hdf5_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "formats/hdf5/hdf5_attributes.hpp"
#include "formats/hdf5/hdf5_index.hpp"
#include "lib/core/checked.hpp"
#include "lib/core/error.hpp"
#include "lib/core/expert_name.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {
namespace {

// Chunks are decoded whole, so they must fit in memory. Bytes.
constexpr int64_t kMaxChunk = int64_t{256} << 20;
// The library's caches of decoded chunks together, but the newest dataset's may be as large. Bytes.
constexpr size_t kMaxCaches = size_t{256} << 20;
constexpr std::array<H5Z_filter_t, 4> kFilters = {H5Z_FILTER_DEFLATE, H5Z_FILTER_SHUFFLE,
                                                  H5Z_FILTER_FLETCHER32, kZstdFilter};
constexpr int64_t kMaxSlots = int64_t{1} << 20;  // of one cache
constexpr size_t kMaxOpened = 16;                // datasets that stay open

// ---- element types

struct FloatRow {
  size_t bytes, exponent_bits, exponent_bias;
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
  DType unsigned_type, signed_type;
};
constexpr std::array kIntegers = {
    IntegerRow{1, DType::kU8, DType::kI8},
    IntegerRow{2, DType::kBF16, DType::kBF16},
    IntegerRow{4, DType::kU32, DType::kI32},
    IntegerRow{8, DType::kU64, DType::kI64},
};

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
    if (H5Tget_size(type) == row.bytes && sign == 8 * row.bytes - 1 && exponent == mantissa_bits &&
        exponent_bits == row.exponent_bits && exponent + exponent_bits == sign &&
        H5Tget_ebias(type) == row.exponent_bias) {
      return row.dtype;
    }
  }
  throw Error::input("element type: a float that is neither IEEE nor BF16");
}

// `stated`: the dataset's attribute "dtype".
DType element_type(hid_t type, const std::optional<std::string>& stated) {
  const bool integer = H5Tget_class(type) == H5T_INTEGER;
  if (!integer && H5Tget_class(type) != H5T_FLOAT) {
    throw Error::input("element type: neither integers nor floats");
  }
  const DType stored = integer ? integer_type(type) : float_type(type);
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

bool is_big_endian(hid_t type) {
  return H5Tget_order(type) == H5T_ORDER_BE && H5Tget_size(type) > 1;
}

// ---- shapes and storage

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

Shape shape_of(std::span<const hsize_t> dims) {
  std::vector<int64_t> out;
  for (hsize_t dim : dims) {
    if (dim == 0) throw Error::input("shape: a dimension of 0");
    out.push_back(static_cast<int64_t>(dim));  // Shape refuses what becomes negative
  }
  return Shape(out);
}

void check_filters(hid_t properties) {
  const int count = hdf5_check(H5Pget_nfilters(properties), "filters cannot be read");
  for (int i = 0; i < count; ++i) {
    std::array<char, 80> name{};
    unsigned flags = 0, config = 0;
    size_t num_params = 0;
    const H5Z_filter_t id =
        hdf5_check(H5Pget_filter2(properties, static_cast<unsigned>(i), &flags, &num_params,
                                  nullptr, name.size() - 1, name.data(), &config),
                   "filters cannot be read");
    if (std::ranges::find(kFilters, id) != kFilters.end()) continue;
    throw Error::input(fmt::format("filter {} ({}) is not supported", id,
                                   name[0] == '\0' ? "unnamed" : shown(name.data())))
        .hint("rewrite the file with deflate (gzip)");
  }
}

// The cache with which a reader that goes from front to back has each chunk decoded once: for the
// chunks that one index of the first axis meets. Throws Error::input for chunks that cannot be read.
Hdf5Cache plan_cache(hid_t properties, std::span<const hsize_t> dims, size_t width) {
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
  check_filters(properties);
  // Without filters the library reads into the caller's memory, if a chunk fits no cache.
  if (H5Pget_nfilters(properties) == 0) return {};
  int64_t side_by_side = 1;
  for (size_t axis = 1; axis < dims.size(); ++axis) {
    const auto along = static_cast<int64_t>((dims[axis] - 1) / chunk[axis] + 1);
    side_by_side = std::min(checked_mul(side_by_side, along), kMaxChunk / bytes);
  }
  // The library finds a chunk in a table by its coordinates; two must not meet in a slot.
  return {.slots = static_cast<size_t>(std::min(16 * side_by_side + 1, kMaxSlots)),
          .bytes = static_cast<size_t>(side_by_side * bytes)};
}

// Everything but name and number. Throws Error::input for what is not supported.
Hdf5Dataset describe(hid_t dataset, hid_t type, Hdf5Cache& cache) {
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
    cache = plan_cache(properties.get(), dims, H5Tget_size(type));
    if (stored == 0) throw Error::input("no data: the dataset was never written");
  } else if (stored != static_cast<hsize_t>(bytes)) {
    throw Error::input(fmt::format("{} bytes are stored, {} {} needs {}", stored,
                                   dtype_name(out.spec.dtype), out.spec.shape.to_string(), bytes));
  } else if (layout == H5D_CONTIGUOUS && !is_big_endian(type)) {
    out.file_offset = static_cast<int64_t>(H5Dget_offset(dataset));
  }
  return out;
}

// ---- groups

struct Link {
  std::string name;
  H5L_type_t kind;
};
using Links = std::vector<Link>;

// Exceptions must not pass through the library: the callback only collects.
herr_t collect_link(hid_t /*group*/, const char* name, const H5L_info_t* info,
                    void* links) noexcept {
  try {
    static_cast<Links*>(links)->push_back({name, info->type});
    return 0;
  } catch (...) {
    return -1;
  }
}

Links links_of(hid_t file, const std::string& path) {
  const Hdf5Handle group(H5Gopen2(file, path.empty() ? "/" : path.c_str(), H5P_DEFAULT), H5Gclose,
                         "the group cannot be opened");
  Links links;
  hdf5_check(H5Literate(group.get(), H5_INDEX_NAME, H5_ITER_INC, nullptr, collect_link, &links),
             "the group cannot be listed");
  return links;
}

// Whether an expert may need what has this name: its own tensor, or a group above it.
bool may_name_experts(std::string_view name) {
  const std::string_view last = name.substr(name.rfind('.') + 1);
  return names_expert(name) || last == "model" || last == "layers" || last == "block" ||
         last == "mlp" || std::ranges::all_of(last, is_digit);
}

// The slab of `dims` that begins at element `at`: one index of each of the first axes, some of the
// next axis, all of the axes behind.
struct Slab {
  std::vector<hsize_t> first, extent;
  hsize_t elements = 1;
};

// The longest one that has at most `count` elements.
Slab slab_at(std::span<const hsize_t> dims, hsize_t at, hsize_t count) {
  Slab slab;
  hsize_t stride = 1;  // elements of one index of the axis
  for (hsize_t dim : dims) stride *= dim;
  bool inside = true;  // one index of each axis before
  for (hsize_t dim : dims) {
    stride /= dim;
    slab.first.push_back(at / stride % dim);
    const bool ranges = inside && at % stride == 0 && count >= stride;
    const hsize_t some = std::min(count / stride, dim - slab.first.back());
    slab.extent.push_back(ranges ? some : inside ? 1 : dim);
    slab.elements *= slab.extent.back();
    inside = inside && !ranges;
  }
  return slab;
}

Hdf5Handle open_for_reading(const std::string& path) {
  prepare_hdf5();
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "cannot be opened");
  // Some file systems have no locks.
  hdf5_check(H5Pset_file_locking(access.get(), false, true), "cannot be opened");
  return {H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()), H5Fclose, "cannot be opened"};
}

}  // namespace

Hdf5File::Hdf5File(const std::string& path) : file_(open_for_reading(path)) {}

// A list of groups to visit takes the place of recursion.
void Hdf5File::list(const Emit& emit) {
  emit_root_attributes(file_.get(), emit);
  groups_ = {{}};
  while (!groups_.empty()) {
    const Group group = std::move(groups_.back());
    groups_.pop_back();
    const bool root = group.name.empty();
    const Links links = in_context(root ? "root group" : shown(group.name),
                                   [&] { return links_of(file_.get(), group.path); });
    for (const Link& link : links) {
      Group here{.name = root ? link.name : group.name + "." + link.name,
                 .path = group.path + "/" + link.name};
      const std::string name = here.name;
      try {
        in_context(shown(name), [&] { visit(std::move(here), link.kind, emit); });
      } catch (const Error& error) {
        if (may_name_experts(name)) throw;
        emit(encode_hdf5_passed_over(error.what()));
      }
    }
  }
}

void Hdf5File::visit(Group here, H5L_type_t kind, const Emit& emit) {
  check_tensor_name(here.name);
  if (kind == H5L_TYPE_SOFT) throw Error::input("soft links are not followed");
  if (kind == H5L_TYPE_EXTERNAL) throw Error::input("external links are not followed");
  if (kind != H5L_TYPE_HARD) throw Error::input("links of this kind are not followed");
  H5O_info_t object{};
  hdf5_check(
      H5Oget_info_by_name2(file_.get(), here.path.c_str(), &object, H5O_INFO_BASIC, H5P_DEFAULT),
      "object cannot be read");
  if (object.type == H5O_TYPE_GROUP) {
    if (!seen_.insert(object.addr).second) throw Error::input("a group of two names");
    groups_.push_back(std::move(here));
  } else if (object.type == H5O_TYPE_DATASET) {
    const Hdf5Handle dataset(H5Dopen2(file_.get(), here.path.c_str(), H5P_DEFAULT), H5Dclose,
                             "dataset cannot be opened");
    const Hdf5Handle type(H5Dget_type(dataset.get()), H5Tclose, "element type cannot be read");
    const H5T_class_t type_class = H5Tget_class(type.get());
    const bool numbers = type_class == H5T_INTEGER || type_class == H5T_FLOAT;
    if (!numbers && !may_name_experts(here.name)) return;  // records, texts
    Listed listed{.path = std::move(here.path)};
    Hdf5Dataset description = describe(dataset.get(), type.get(), listed.cache);
    description.name = std::move(here.name);
    description.number = static_cast<int64_t>(listed_.size());
    listed_.push_back(std::move(listed));
    emit(encode_hdf5_dataset(description));
  }
}

// Opens the dataset, unless it is among those that were read last.
Hdf5File::Opened& Hdf5File::open(int64_t number) {
  const auto at = std::ranges::find(opened_, number, &Opened::number);
  if (at != opened_.end()) {
    opened_.splice(opened_.begin(), opened_, at);
    return *at;
  }
  const Listed& listed = listed_.at(static_cast<size_t>(number));
  size_t caches = listed.cache.bytes;
  for (const Opened& each : opened_) caches += each.cache_bytes;
  while (!opened_.empty() && (caches > kMaxCaches || opened_.size() >= kMaxOpened)) {
    caches -= opened_.back().cache_bytes;
    opened_.pop_back();
  }
  constexpr std::string_view kFailed = "dataset cannot be opened";
  const Hdf5Handle access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose, kFailed);
  hdf5_check(H5Pset_chunk_cache(access.get(), listed.cache.slots, listed.cache.bytes, 1.0),
             kFailed);
  Hdf5Handle dataset(H5Dopen2(file_.get(), listed.path.c_str(), access.get()), H5Dclose, kFailed);
  Hdf5Handle type(H5Dget_type(dataset.get()), H5Tclose, kFailed);
  Hdf5Handle space(H5Dget_space(dataset.get()), H5Sclose, kFailed);
  std::vector<hsize_t> dims = dims_of(space.get());
  ChunkLengths lengths(dataset.get(), H5Tget_size(type.get()));
  opened_.push_front({number, std::move(dataset), std::move(type), std::move(space),
                      std::move(dims), listed.cache.bytes, std::move(lengths)});
  return opened_.front();
}

void Hdf5File::read(int64_t number, int64_t offset, MutableBytes out) {
  Opened& from = open(number);
  const size_t width = H5Tget_size(from.type.get());
  hsize_t at = static_cast<size_t>(offset) / width;
  // The library leaves memory as it is where a chunk is missing that has no fill value.
  std::ranges::fill(out, std::byte{0});
  for (MutableBytes left = out; !left.empty();) {
    const Slab slab = slab_at(from.dims, at, left.size() / width);
    const auto rank = static_cast<int>(from.dims.size());
    if (rank > 0) from.lengths.check(slab.first, slab.extent);
    const Hdf5Handle memory(
        rank == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(rank, slab.extent.data(), nullptr),
        H5Sclose, "cannot be read");
    if (rank > 0) {
      hdf5_check(H5Sselect_hyperslab(from.space.get(), H5S_SELECT_SET, slab.first.data(), nullptr,
                                     slab.extent.data(), nullptr),
                 "cannot be read");
    }
    // In the file's own type, so that no bit is converted.
    hdf5_check(H5Dread(from.dataset.get(), from.type.get(), memory.get(), from.space.get(),
                       H5P_DEFAULT, left.data()),
               "cannot be read");
    left = left.subspan(slab.elements * width);
    at += slab.elements;
  }
  if (!is_big_endian(from.type.get())) return;
  for (size_t i = 0; i < out.size(); i += width) std::ranges::reverse(out.subspan(i, width));
}

}  // namespace mxfp4
