#include "formats/hdf5/hdf5_file.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "lib/core/error.hpp"
#include "lib/core/expert_name.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {
namespace {

// Datasets that stay open: those of a layer, each with its own cache of decoded chunks, which the
// library finds by their coordinates in a table.
constexpr size_t kMaxOpened = 6;
constexpr size_t kCache = size_t{48} << 20;
constexpr size_t kCacheSlots = 65537;

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

// The root group's.
std::map<std::string, std::string> root_attributes(hid_t file) {
  const Hdf5Handle root(H5Gopen2(file, "/", H5P_DEFAULT), H5Gclose, "root group cannot be opened");
  H5O_info_t info;
  hdf5_check(H5Oget_info(root.get(), &info), "root group cannot be read");
  std::map<std::string, std::string> attributes;
  for (hsize_t i = 0; i < info.num_attrs; ++i) {
    const Hdf5Handle attribute(
        H5Aopen_by_idx(root.get(), ".", H5_INDEX_NAME, H5_ITER_INC, i, H5P_DEFAULT, H5P_DEFAULT),
        H5Aclose, "attributes cannot be read");
    std::array<char, 256> name{};  // longer names are cut
    hdf5_check(H5Aget_name(attribute.get(), name.size(), name.data()), "attributes cannot be read");
    const auto value = in_context("attribute " + shown(name.data()),
                                  [&] { return read_attribute(attribute.get()); });
    if (value) attributes[name.data()] = *value;
  }
  return attributes;
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

// Exceptions must not pass through the library: the callback only collects.
herr_t Hdf5File::collect(hid_t /*group*/, const char* path, const H5L_info_t* info,
                         void* links) noexcept {
  try {
    static_cast<std::vector<Link>*>(links)->push_back({path, info->type});
    return 0;
  } catch (...) {
    return -1;
  }
}

Hdf5Index Hdf5File::list(const std::function<void()>& alive) {
  Hdf5Index index;
  index.attributes = root_attributes(file_.get());
  std::vector<Link> links;
  hdf5_check(H5Lvisit(file_.get(), H5_INDEX_NAME, H5_ITER_INC, collect, &links),
             "its groups cannot be listed");
  for (const Link& link : links) {
    alive();
    std::string name = link.path;
    std::ranges::replace(name, '/', '.');
    try {
      in_context(shown(name), [&] { add(link, name, index); });
    } catch (const Error& error) {
      if (may_name_experts(name)) throw;
      index.passed_over.emplace_back(error.what());
    }
  }
  return index;
}

void Hdf5File::add(const Link& link, const std::string& name, Hdf5Index& index) {
  check_tensor_name(name);
  if (link.kind == H5L_TYPE_SOFT) throw Error::input("soft links are not followed");
  if (link.kind != H5L_TYPE_HARD) throw Error::input("external links are not followed");
  H5O_info_t object{};
  hdf5_check(
      H5Oget_info_by_name2(file_.get(), link.path.c_str(), &object, H5O_INFO_BASIC, H5P_DEFAULT),
      "object cannot be read");
  if (object.type == H5O_TYPE_GROUP && !groups_.insert(object.addr).second) {
    throw Error::input("a group of two names");  // what it holds was met by the other
  }
  if (object.type != H5O_TYPE_DATASET) return;
  const Hdf5Handle dataset(H5Dopen2(file_.get(), link.path.c_str(), H5P_DEFAULT), H5Dclose,
                           "dataset cannot be opened");
  const Hdf5Handle type(H5Dget_type(dataset.get()), H5Tclose, "element type cannot be read");
  const H5T_class_t type_class = H5Tget_class(type.get());
  const bool numbers = type_class == H5T_INTEGER || type_class == H5T_FLOAT;
  if (!numbers && !may_name_experts(name)) return;  // records, texts
  Hdf5Dataset description = describe_hdf5(dataset.get(), type.get());
  description.name = name;
  description.number = std::ssize(listed_);
  listed_.push_back(link.path);
  index.datasets.push_back(std::move(description));
}

// Opens the dataset, unless it is among those that were read last.
Hdf5File::Opened& Hdf5File::open(int64_t number) {
  const auto at = std::ranges::find(opened_, number, &Opened::number);
  if (at != opened_.end()) {
    opened_.splice(opened_.begin(), opened_, at);
    return *at;
  }
  if (opened_.size() >= kMaxOpened) opened_.pop_back();
  const std::string& path = listed_.at(static_cast<size_t>(number));
  constexpr std::string_view kFailed = "dataset cannot be opened";
  const Hdf5Handle access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose, kFailed);
  hdf5_check(H5Pset_chunk_cache(access.get(), kCacheSlots, kCache, 1.0), kFailed);
  Hdf5Handle dataset(H5Dopen2(file_.get(), path.c_str(), access.get()), H5Dclose, kFailed);
  Hdf5Handle type(H5Dget_type(dataset.get()), H5Tclose, kFailed);
  Hdf5Handle space(H5Dget_space(dataset.get()), H5Sclose, kFailed);
  std::vector<hsize_t> dims = dims_of(space.get());
  ChunkLengths lengths(dataset.get(), H5Tget_size(type.get()));
  opened_.push_front({number, std::move(dataset), std::move(type), std::move(space),
                      std::move(dims), std::move(lengths)});
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
