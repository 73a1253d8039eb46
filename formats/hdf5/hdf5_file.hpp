// Lists and reads an HDF5 file with the HDF5 library, which may crash on a damaged file: use it in
// a child process (child_process.hpp).
//
// Usage:  Hdf5File file(path);  Hdf5Index index = file.list(alive);  file.read(number, offset, out);
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <set>
#include <string>
#include <vector>

#include "formats/hdf5/chunk_lengths.hpp"
#include "formats/hdf5/hdf5_describe.hpp"
#include "formats/hdf5/hdf5_handle.hpp"
#include "formats/hdf5/hdf5_index.hpp"
#include "lib/core/tensor.hpp"

namespace mxfp4 {

class Hdf5File {
 public:
  // Throws Error::input, as the other functions do; without the path in the text.
  explicit Hdf5File(const std::string& path);

  // Datasets in any order. What cannot be read is refused if an expert may need it, and else passed
  // over. Calls alive() between objects.
  [[nodiscard]] Hdf5Index list(const std::function<void()>& alive);

  // Reads bytes [offset, offset + out.size()) of a listed dataset, whole elements within it,
  // little-endian and row-major.
  void read(int64_t number, int64_t offset, MutableBytes out);

 private:
  // A dataset that was read lately.
  struct Opened {
    int64_t number;
    Hdf5Handle dataset, type, space;
    std::vector<hsize_t> dims;
    ChunkLengths lengths;
  };
  struct Link {
    std::string path;
    H5L_type_t kind;
  };

  static herr_t collect(hid_t group, const char* path, const H5L_info_t* info,
                        void* links) noexcept;
  void add(const Link& link, const std::string& name, Hdf5Index& index);
  Opened& open(int64_t number);

  Hdf5Handle file_;
  std::vector<std::string> listed_;  // paths, by number
  std::set<haddr_t> groups_;         // that were met
  std::list<Opened> opened_;         // the newest first
};

}  // namespace mxfp4
