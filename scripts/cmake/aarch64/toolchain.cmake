# Cross-compiles for 64-bit Arm (GB200, GB300, GH200, DGX Spark) with Debian's compiler and libraries;
# `scripts/install-packages --arm64` installs them. Preset "arm64" of CMakePresets.json uses this file.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)

# The emulator and its libraries are Debian's own for arm64; the cross compiler's libc under the same
# root makes qemu spin.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L /)

# libhdf5-dev of two architectures cannot be installed side by side, so hdf5.pc beside this file names
# the headers of the build machine's, which say the same of a 64-bit Arm, and arm64's libhdf5-103-1.
set(ENV{PKG_CONFIG_LIBDIR}
    ${CMAKE_CURRENT_LIST_DIR}:/usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
