#include "formats/hdf5/hdf5_attributes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "formats/hdf5/hdf5_index.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {

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

void emit_root_attributes(hid_t file, const Emit& emit) {
  const Hdf5Handle root(H5Gopen2(file, "/", H5P_DEFAULT), H5Gclose, "root group cannot be opened");
  H5O_info_t info;
  hdf5_check(H5Oget_info(root.get(), &info), "root group cannot be read");
  for (hsize_t i = 0; i < info.num_attrs; ++i) {
    const Hdf5Handle attribute(
        H5Aopen_by_idx(root.get(), ".", H5_INDEX_NAME, H5_ITER_INC, i, H5P_DEFAULT, H5P_DEFAULT),
        H5Aclose, "attributes cannot be read");
    std::array<char, 256> name{};  // longer names are cut
    hdf5_check(H5Aget_name(attribute.get(), name.size(), name.data()), "attributes cannot be read");
    const auto value = in_context("attribute " + shown(name.data()),
                                  [&] { return read_attribute(attribute.get()); });
    if (value) emit(encode_hdf5_attribute(name.data(), *value));
  }
}

}  // namespace mxfp4
