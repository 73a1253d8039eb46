// Lists and reads an HDF5 file with the HDF5 library, which may crash on a damaged file: use it in
// a child process (child_process.hpp).
//
// Usage:  Hdf5File file(path);  file.list(emit);  file.read(number, offset, out);
#pragma once

#include <cstdint>
#include <list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/hdf5/chunk_lengths.hpp"
#include "formats/hdf5/hdf5_handle.hpp"
#include "formats/os/child_process.hpp"
#include "lib/core/tensor.hpp"

namespace mxfp4 {

// Of decoded chunks, the library's, for one dataset.
struct Hdf5Cache {
  size_t slots = 1, bytes = 0;
};

class Hdf5File {
 public:
  // Throws Error::input, as the other functions do; without the path in the text.
  explicit Hdf5File(const std::string& path);

  // Emits the pieces of an Hdf5Index, datasets in any order. What cannot be read is refused if an
  // expert may need it, and else passed over.
  void list(const Emit& emit);

  // Reads bytes [offset, offset + out.size()) of a listed dataset, whole elements within it,
  // little-endian and row-major.
  void read(int64_t number, int64_t offset, MutableBytes out);

 private:
  struct Group {
    std::string name;  // dotted; the root's are empty
    std::string path;  // in the file
  };
  struct Listed {
    std::string path;
    Hdf5Cache cache{};
  };
  // A dataset that was read lately.
  struct Opened {
    int64_t number;
    Hdf5Handle dataset, type, space;
    std::vector<hsize_t> dims;
    size_t cache_bytes;
    ChunkLengths lengths;
  };

  void visit(Group here, H5L_type_t kind, const Emit& emit);
  Opened& open(int64_t number);

  Hdf5Handle file_;
  std::vector<Listed> listed_;  // by number
  std::vector<Group> groups_;   // to be visited
  std::set<haddr_t> seen_;      // groups that were met
  std::list<Opened> opened_;    // the newest first
};

}  // namespace mxfp4
