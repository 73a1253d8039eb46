#include "formats/output/moved_files.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "formats/blob/manifest.hpp"
#include "formats/output/own_files.hpp"
#include "formats/output/records.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

// The names in a folder, a manifest first, a journal last; without the folders of a replacement.
std::vector<std::string> entries_of(const Directory& folder) {
  std::vector<std::string> entries = folder.names();
  std::erase_if(entries, [](const std::string& name) { return name.starts_with(kStagingPrefix); });
  std::ranges::sort(entries, {}, [](const std::string& name) {
    return std::pair(name == kManifestName ? 0 : name.starts_with(kJournalPrefix) ? 2 : 1, name);
  });
  return entries;
}

// Moves an entry. A folder of an image's lower layer cannot get another name, but the files in
// it can.
void move_entry(const Directory& from, const Directory& to, const std::string& name) {
  if (renameat(from.descriptor(), name.c_str(), to.descriptor(), name.c_str()) == 0) return;
  const bool other_layer = errno == EXDEV;
  const std::optional<Directory> folder = other_layer ? from.find(name) : std::nullopt;
  struct stat found {};
  if (!folder || fstat(folder->descriptor(), &found) != 0) return from.rename(name, to, name);
  (void)to.create(name, found.st_mode & 0777);
  const Directory target = to.folder(name);
  for (const std::string& entry : entries_of(*folder)) move_entry(*folder, target, entry);
  if (!from.remove_folder(name)) from.rename(name, to, name);
}

// Twice, since what failed once may pass; keeps the first fault.
void attempt(std::optional<Error>& fault, const std::function<void()>& body) {
  for (int again = 0; again < 2; ++again) {
    try {
      body();
      return;
    } catch (const Error& error) {
      if (again == 1 && !fault) fault = error;
    } catch (const std::bad_alloc&) {
      if (again == 1 && !fault) fault = Error::output("out of memory");
    }
  }
}

}  // namespace

Directory move_out(const ReplacementPlaces& places) {
  const Directory& out = places.holder;
  if (!out.create(places.old, 0700) && errno != EEXIST) {
    throw Error::output(fmt::format("cannot create: {}", std::strerror(errno)))
        .in_file((out.path() / places.old).string());
  }
  Directory old = out.folder(places.old);
  try {
    for (const std::string& name : entries_of(out)) move_entry(out, old, name);
    old.sync();
    out.sync();
    out.rename(places.fresh, out, places.arriving);
    return old;
  } catch (const Error&) {
    // Moving may fail, for example for a folder without write permission. Everything moves back;
    // the manifest, which was moved first, returns last.
    std::optional<Error> ignored;
    attempt(ignored, [&] {
      std::vector<std::string> moved = entries_of(old);
      std::ranges::reverse(moved);
      for (const std::string& name : moved) move_entry(old, out, name);
    });
    (void)out.remove_folder(places.old);
    throw;
  }
}

std::string move_in(const ReplacementPlaces& places, const Directory& arriving,
                    const Directory& old) {
  const Directory& out = places.holder;
  std::optional<Error> fault;
  std::vector<std::string> names;
  attempt(fault, [&] { names = entries_of(arriving); });
  std::ranges::reverse(names);  // the manifest last
  for (const std::string& name : names) {
    attempt(fault, [&] {
      // A file that has the name meanwhile is not ours.
      if (out.state(name)) move_entry(out, old, name);
      arriving.rename(name, out, name);
    });
  }
  if (fault) {
    throw fault->hint("the same command again moves the files of the new result that are left");
  }
  // Both folders of each move: the new names, and that the old ones are gone.
  attempt(fault, [&] { arriving.sync(); });
  attempt(fault, [&] { out.sync(); });
  if (!out.remove_folder(places.arriving) && !out.remove_folder(places.arriving) && !fault) {
    fault = Error::output(fmt::format("cannot remove: {}", std::strerror(errno)))
                .in_file((out.path() / places.arriving).string());
  }
  attempt(fault, [&] { out.sync(); });
  return fault ? fmt::format("the new result is in place, but: {}", fault->what()) : std::string();
}

}  // namespace mxfp4
