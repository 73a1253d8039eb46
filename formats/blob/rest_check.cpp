#include "formats/blob/rest_check.hpp"

#include <fmt/format.h>

#include <system_error>

#include "formats/blob/blob_reader.hpp"
#include "formats/blob/gather.hpp"
#include "formats/remote/files_at.hpp"

namespace mxfp4 {

namespace fs = std::filesystem;

void require_bytes(const fs::path& path, int64_t size, const std::string* sum, ReadFrom from,
                   const std::function<void()>& between) {
  in_file(path.string(), [&] {
    const PositionedFile file = from == ReadFrom::kDevice ? open_past_cache(path) : file_at(path);
    if (file.size() != size) {
      throw Error::input(fmt::format("{} bytes, {} in the manifest", file.size(), size));
    }
    if (sum != nullptr && checksum_of_file(file, between) != *sum) {
      throw Error::input("checksum differs");
    }
  });
}

std::vector<std::string> check_rest_files(const fs::path& model_directory, const Manifest& manifest,
                                          bool sums, ReadFrom from) {
  std::vector<std::string> findings;
  for (const ManifestFile& file : manifest.rest) {
    gather(findings, [&] {
      require_bytes(model_directory / file.name, file.size, sums ? &file.xxh3_128 : nullptr, from);
    });
  }
  return findings;
}

fs::path model_directory_of(const fs::path& given, const fs::path& directory) {
  const fs::path below = directory.lexically_relative(given);
  if (!below.empty() && *below.begin() == kBlobFolder) return given;
  std::error_code ignored;
  // Where a link leads counts more than where it lies.
  for (fs::path blob : {fs::weakly_canonical(given, ignored),
                        (fs::absolute(given, ignored) / "").lexically_normal().parent_path()}) {
    if (blob.filename() != kBlobFolder) blob = blob.parent_path();  // `given` may be a rank's
    if (blob.filename() == kBlobFolder) return blob.parent_path();
  }
  return {};
}

}  // namespace mxfp4
