// A file driver between the HDF5 library and the library's usual driver, "sec2". The library reads
// a chunk in two steps: it looks up the address in the dataset's index, then asks the driver for
// the bytes. During find() this driver notes what it is asked for, and reads nothing.
#include "formats/hdf5/hdf5_chunk_finder.hpp"

#include <memory>
#include <new>
#include <string>

#include "formats/hdf5/hdf5_handle.hpp"

namespace mxfp4 {

// The library knows only `front`, which must come first.
struct Hdf5ChunkFinder::Driver {
  H5FD_t front{};
  H5FD_t* inner = nullptr;
  bool noting = false;  // note the place of the next raw data, do not read it
  std::optional<Hdf5ChunkPlace> noted;
};

namespace {

using Driver = Hdf5ChunkFinder::Driver;

Driver* driver_of(H5FD_t* file) { return reinterpret_cast<Driver*>(file); }
const Driver* driver_of(const H5FD_t* file) { return reinterpret_cast<const Driver*>(file); }

H5FD_t* open_file(const char* name, unsigned flags, hid_t /*access*/, haddr_t max_address) {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  if (access < 0) return nullptr;
  H5FD_t* inner = nullptr;
  if (H5Pset_fapl_sec2(access) >= 0) inner = H5FDopen(name, flags, access, max_address);
  H5Pclose(access);
  if (inner == nullptr) return nullptr;
  auto* driver = new (std::nothrow) Driver;
  if (driver == nullptr) {
    H5FDclose(inner);
    return nullptr;
  }
  driver->inner = inner;
  return &driver->front;
}

herr_t close_file(H5FD_t* file) {
  const std::unique_ptr<Driver> driver(driver_of(file));
  // A file that could not be opened is closed, too, and every call of the library clears the errors
  // that say why.
  const hid_t errors = H5Eget_current_stack();
  const herr_t result = H5FDclose(driver->inner);
  if (errors >= 0) H5Eset_current_stack(errors);
  return result;
}

// `file` may be null: the library also asks before a file is open.
herr_t query(const H5FD_t* /*file*/, unsigned long* flags) {
  *flags = H5FD_FEAT_ACCUMULATE_METADATA_READ;
  return 0;
}

haddr_t get_end_of_addresses(const H5FD_t* file, H5FD_mem_t type) {
  return H5FDget_eoa(driver_of(file)->inner, type);
}

herr_t set_end_of_addresses(H5FD_t* file, H5FD_mem_t type, haddr_t address) {
  return H5FDset_eoa(driver_of(file)->inner, type, address);
}

haddr_t get_end_of_file(const H5FD_t* file, H5FD_mem_t type) {
  return H5FDget_eof(driver_of(file)->inner, type);
}

herr_t get_handle(H5FD_t* file, hid_t /*access*/, void** handle) {
  *handle = driver_of(file);
  return 0;
}

herr_t read(H5FD_t* file, H5FD_mem_t type, hid_t transfer, haddr_t address, size_t size,
            void* out) {
  Driver& driver = *driver_of(file);
  if (driver.noting && type == H5FD_MEM_DRAW) {
    driver.noted = Hdf5ChunkPlace{.address = address, .size = size};
    return 0;
  }
  return H5FDread(driver.inner, type, transfer, address, size, out);
}

herr_t refuse_write(H5FD_t* /*file*/, H5FD_mem_t /*type*/, hid_t /*transfer*/, haddr_t /*address*/,
                    size_t /*size*/, const void* /*bytes*/) {
  return -1;
}

hid_t driver_id() {
  static const hid_t kId = [] {
    H5FD_class_t driver{};
    driver.name = "mxfp4 chunk finder";
    driver.maxaddr = (haddr_t{1} << 63) - 1;
    driver.fc_degree = H5F_CLOSE_WEAK;
    driver.open = open_file;
    driver.close = close_file;
    driver.query = query;
    driver.get_eoa = get_end_of_addresses;
    driver.set_eoa = set_end_of_addresses;
    driver.get_eof = get_end_of_file;
    driver.get_handle = get_handle;
    driver.read = read;
    driver.write = refuse_write;
    constexpr H5FD_mem_t kKinds[] = H5FD_FLMAP_DICHOTOMY;
    for (int i = 0; i < H5FD_MEM_NTYPES; ++i) driver.fl_map[i] = kKinds[i];
    return H5FDregister(&driver);
  }();
  return kId;
}

}  // namespace

void use_chunk_finder(hid_t access) {
  hdf5_check(H5Pset_driver(access, hdf5_check(driver_id(), "no file driver"), nullptr),
             "no file driver");
}

Hdf5ChunkFinder::Hdf5ChunkFinder(hid_t file) {
  void* handle = nullptr;
  hdf5_check(H5Fget_vfd_handle(file, H5P_DEFAULT, &handle), "no file driver");
  driver_ = static_cast<Driver*>(handle);
}

std::optional<Hdf5ChunkPlace> Hdf5ChunkFinder::find(hid_t dataset, const hsize_t* origin) const {
  constexpr const char* kFailed = "a chunk cannot be found";
  uint32_t skipped = 0;
  std::byte unused{};  // the driver gives no bytes
  driver_->noted.reset();
  driver_->noting = true;
  const herr_t result = H5Dread_chunk(dataset, H5P_DEFAULT, origin, &skipped, &unused);
  driver_->noting = false;
  if (driver_->noted) {
    driver_->noted->skipped = skipped;
    return driver_->noted;
  }
  // For a chunk that was never written, this function of the library fails after the look-up. If
  // the look-up itself fails, in a damaged index, the error comes from a function that it calls.
  if (result < 0 && hdf5_error_origin() == "H5D__chunk_direct_read") return std::nullopt;
  throw hdf5_error(kFailed);
}

}  // namespace mxfp4
