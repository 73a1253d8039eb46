#include "formats/checksum/read_back.hpp"

#include <algorithm>
#include <span>

#include "formats/checksum/checksum.hpp"
#include "formats/os/uninitialized_bytes.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

// Large enough for a device's queue, small enough to stay in the cache until it is summed.
constexpr int64_t kReadBackPiece = int64_t{4} << 20;

void require_written(const AtomicFile& file, std::string_view xxh3_128) {
  std::string found;
  try {
    PositionedFile stored(file.descriptor());
    stored.forget_cached();
    stored.make_direct();
    found = checksum_past_cache(stored);
  } catch (const Error& error) {
    throw Error::output(error.what()).in_file(file.target().string());
  }
  if (found == xxh3_128) return;
  throw Error::output("read back after fsync, its bytes are not those that were written")
      .in_file(file.target().string())
      .hint("device, cable, controller or memory changes bytes: write to another device");
}

}  // namespace

PositionedFile open_past_cache(const std::filesystem::path& path) {
  PositionedFile file(path);
  file.forget_cached();
  file.make_direct();
  return file;
}

std::string checksum_past_cache(const PositionedFile& file, const std::function<void()>& between) {
  Checksum sum;
  UninitializedBytes memory(
      static_cast<size_t>(file.direct_room(std::min(file.size(), kReadBackPiece))));
  for (int64_t at = 0; at < file.size(); at += kReadBackPiece) {
    if (between) between();
    sum.update(file.read_direct(at, std::min(kReadBackPiece, file.size() - at), memory));
  }
  return sum.hex();
}

void commit_summed(AtomicFile& file, std::string_view xxh3_128, ReadBack read_back,
                   const std::function<void()>& before) {
  file.commit([&] {
    if (read_back == ReadBack::kYes) require_written(file, xxh3_128);
    if (before) before();
  });
}

void write_summed(const Directory& directory, const std::string& name, std::string_view text,
                  ReadBack read_back, const std::function<void(const AtomicFile&)>& before) {
  AtomicFile file(directory, name);
  file.append(std::as_bytes(std::span(text)));
  commit_summed(file, read_back == ReadBack::kYes ? checksum_of(text) : "", read_back, [&] {
    if (before) before(file);
  });
}

}  // namespace mxfp4
