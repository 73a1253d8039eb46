# Links the libraries statically that Debian has as static ones: in the wheel, which carries fewer then,
# and in the sanitizer presets, where a process begins sooner without the forty that HDF5's takes along.
include_guard(GLOBAL)  # a quick build of the wheel asks twice
find_library(HDF5_ARCHIVE NAMES libhdf5.a libhdf5_serial.a HINTS ${HDF5_LIBRARY_DIRS} REQUIRED)
foreach(name sz aec xxhash zstd z)
  find_library(${name}_ARCHIVE lib${name}.a REQUIRED)
endforeach()
add_library(mxfp4_hdf5_without_network STATIC scripts/cmake/hdf5_without_network.cpp)
set_target_properties(PkgConfig::HDF5 PROPERTIES INTERFACE_LINK_LIBRARIES
  "${HDF5_ARCHIVE};mxfp4_hdf5_without_network;${sz_ARCHIVE};${aec_ARCHIVE};ZLIB::ZLIB;m;${CMAKE_DL_LIBS}")
set_target_properties(ZLIB::ZLIB PROPERTIES IMPORTED_LOCATION "${z_ARCHIVE}"
  IMPORTED_LOCATION_RELEASE "${z_ARCHIVE}")
set_target_properties(PkgConfig::ZSTD PROPERTIES INTERFACE_LINK_LIBRARIES "${zstd_ARCHIVE}")
set_target_properties(PkgConfig::XXHASH PROPERTIES INTERFACE_LINK_LIBRARIES "${xxhash_ARCHIVE}")
