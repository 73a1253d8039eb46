// Finds where the chunks of a dataset are stored, each in the time of one look-up. The library's
// own function for that (H5Dget_chunk_info_by_coord, version 1.10) goes through all chunks each
// time.
//
// Usage:  Hdf5Handle access = ...; use_chunk_finder(access.get());  // opens the file with a driver
//         Hdf5ChunkFinder finder(file);  ... finder.find(dataset, origin) ...
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <optional>

namespace mxfp4 {

struct Hdf5ChunkPlace {
  haddr_t address = 0;   // bytes from the start of the file
  hsize_t size = 0;      // bytes as stored
  uint32_t skipped = 0;  // bit i: filter i was not applied
};

// Makes files that are opened with these access properties use the driver that find() needs. Throws
// Error::input.
void use_chunk_finder(hid_t access);

class Hdf5ChunkFinder {
 public:
  // `file` was opened with properties that use_chunk_finder() changed. Throws Error::input.
  explicit Hdf5ChunkFinder(hid_t file);

  // The chunk that begins at `origin`, one coordinate an axis; empty if it was never written.
  // Throws Error::input.
  [[nodiscard]] std::optional<Hdf5ChunkPlace> find(hid_t dataset, const hsize_t* origin) const;

  struct Driver;

 private:
  Driver* driver_ = nullptr;  // the open file's
};

}  // namespace mxfp4
