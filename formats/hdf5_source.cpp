#include "formats/hdf5_source.hpp"

#include "lib/core/error.hpp"

namespace mxfp4 {

std::unique_ptr<Source> open_hdf5(const std::filesystem::path& path) {
  throw Error::input(path.string() + ": HDF5 files are not read by this build");
}

}  // namespace mxfp4
