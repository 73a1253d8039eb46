// What the files of the library of faults share (faults.cpp says what it does).
#pragma once
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>

// Whether FAULT_AT lets this call on this path fail; errno is set then.
bool call_fails(const char* call, const char* path);

template <class Function>
Function real(Function, const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

// A path: given, a name in an open directory, or of an open file.
struct Path {
  char text[PATH_MAX] = "";
  explicit Path(const char* path) { std::snprintf(text, sizeof text, "%s", path); }
  Path(int base, const char* name) {
    const size_t end = base == AT_FDCWD || name[0] == '/' ? 0 : of_descriptor(base);
    std::snprintf(text + end, sizeof text - end, "%s%s", end > 0 ? "/" : "", name);
  }
  explicit Path(int file) { of_descriptor(file); }

 private:
  size_t of_descriptor(int file) {
    const int saved = errno;
    char link[64];
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    const long size = syscall(SYS_readlinkat, AT_FDCWD, link, text, sizeof text - 1);
    errno = saved;
    const size_t end = size < 0 ? 0 : static_cast<size_t>(size);
    text[end] = 0;
    return end;
  }
};
