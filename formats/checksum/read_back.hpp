// Files as their device has them: read past the system's page cache, which holds what was written
// and not what is stored (convert --read-back, verify --direct). Where a file system has no such
// reads (O_DIRECT), the cache is asked to let the file go first.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "formats/os/atomic_file.hpp"
#include "formats/os/positioned_file.hpp"

namespace mxfp4 {

// Whether a file is read again, and compared with what was written, before it gets its name.
enum class ReadBack : bool { kNo, kYes };
// Where a check has its bytes from: the page cache, or the device behind it.
enum class ReadFrom : bool { kCache, kDevice };

// The file, set up so that it is read past the page cache. Throws Error::input, without the path in
// its text.
[[nodiscard]] PositionedFile open_past_cache(const std::filesystem::path& path);

// XXH3-128 of the whole file, as 32 hexadecimal digits. `file` comes from open_past_cache().
// `between`, if given, is called every few MB and may throw. Throws Error::input, without the path
// in its text.
[[nodiscard]] std::string checksum_past_cache(const PositionedFile& file,
                                              const std::function<void()>& between = {});

// AtomicFile::commit(), which with ReadBack::kYes reads the synced file again first. Throws
// Error::output if its checksum is not `xxh3_128`, or if it cannot be read: the file gets no name.
void commit_summed(AtomicFile& file, std::string_view xxh3_128, ReadBack read_back,
                   const std::function<void()>& before = {});

// Writes a small file atomically, as commit_summed().
void write_summed(const Directory& directory, const std::string& name, std::string_view text,
                  ReadBack read_back, const std::function<void(const AtomicFile&)>& before = {});

}  // namespace mxfp4
