// Part of the library of faults (faults.cpp): calls that look at files, folders and rights.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "faults.hpp"

namespace {

bool fails(const char* call, const char* path) { return call_fails(call, path); }
bool fails(const char* call, const Path& path) { return call_fails(call, path.text); }

// The result of a look at a path, whose device FAULT_DEVICE may change.
int on_device(const char* path, struct stat* found, int result) {
  const char* prefix = std::getenv("FAULT_DEVICE");
  if (result == 0 && prefix != nullptr && std::strncmp(path, prefix, std::strlen(prefix)) == 0) {
    found->st_dev += 1000;
  }
  return result;
}

// Written as aliases, since the function and the type have the same name.
using Stat = int (*)(const char*, struct stat*);

using Statx = int (*)(int, const char*, int, unsigned, struct statx*);

FILE* open_stream(const char* call, const char* path, const char* mode) {
  if (fails(mode[0] == 'r' ? "open" : "create", path)) return nullptr;
  return reinterpret_cast<FILE* (*)(const char*, const char*)>(dlsym(RTLD_NEXT, call))(path, mode);
}

}  // namespace

extern "C" {

int stat(const char* path, struct stat* found) noexcept {
  if (fails("stat", path)) return -1;
  return on_device(path, found, reinterpret_cast<Stat>(dlsym(RTLD_NEXT, "stat"))(path, found));
}
int lstat(const char* path, struct stat* found) noexcept {
  if (fails("lstat", path)) return -1;
  return real(&lstat, "lstat")(path, found);
}
int fstat(int file, struct stat* found) noexcept {
  if (fails("fstat", Path(file))) return -1;
  return on_device(Path(file).text, found, real(&fstat, "fstat")(file, found));
}
int fstatat(int base, const char* name, struct stat* found, int flags) noexcept {
  if (fails("fstatat", Path(base, name))) return -1;
  return on_device(Path(base, name).text, found,
                   real(&fstatat, "fstatat")(base, name, found, flags));
}
DIR* opendir(const char* path) {
  if (fails("opendir", path)) return nullptr;
  return real(&opendir, "opendir")(path);
}
DIR* fdopendir(int file) {
  if (fails("opendir", Path(file))) return nullptr;
  return real(&fdopendir, "fdopendir")(file);
}
dirent* readdir(DIR* directory) {
  if (fails("readdir", Path(dirfd(directory)))) return nullptr;
  return real(&readdir, "readdir")(directory);
}
int statx(int base, const char* name, int flags, unsigned mask, struct statx* found) noexcept {
  const Path path = name[0] == 0 ? Path(base) : Path(base, name);
  if (fails("statx", path)) return -1;
  return reinterpret_cast<Statx>(dlsym(RTLD_NEXT, "statx"))(base, name, flags, mask, found);
}
int access(const char* path, int mode) noexcept {
  if (fails("access", path)) return -1;
  return real(&access, "access")(path, mode);
}
int fchown(int file, uid_t user, gid_t group) noexcept {
  if (fails("fchown", Path(file))) return -1;
  return real(&fchown, "fchown")(file, user, group);
}
ssize_t readlink(const char* path, char* text, size_t size) noexcept {
  if (fails("readlink", path)) return -1;
  return real(&readlink, "readlink")(path, text, size);
}
// The streams of libstdc++ begin with these.
FILE* fopen(const char* path, const char* mode) { return open_stream("fopen", path, mode); }
FILE* fopen64(const char* path, const char* mode) { return open_stream("fopen64", path, mode); }

}  // extern "C"
