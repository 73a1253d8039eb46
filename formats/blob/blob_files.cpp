#include "formats/blob/blob_files.hpp"

#include <fmt/format.h>

#include <set>

#include "formats/blob/gather.hpp"
#include "formats/remote/files_at.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxIndexBytes = int64_t{256} << 20;

}  // namespace

std::vector<std::string> check_index(const fs::path& directory, const Manifest& manifest) {
  std::vector<std::string> findings;
  const fs::path index = directory / kIndexName;
  gather(findings, [&] {
    in_file(index.string(), [&] {
      if (text_at(index, kMaxIndexBytes) != write_index(manifest)) {
        throw Error::input("differs from the manifest");
      }
    });
  });
  return findings;
}

std::vector<std::string> check_blob_files(const fs::path& directory, const Manifest& manifest) {
  std::vector<std::string> findings = check_index(directory, manifest);
  for (std::string& finding : check_other_files(directory, manifest)) {
    findings.push_back(std::move(finding));
  }
  return findings;
}

std::vector<std::string> check_other_files(const fs::path& directory, const Manifest& manifest) {
  std::vector<std::string> findings;
  std::set<std::string> known;
  for (const ManifestLayer& layer : manifest.layers) known.insert(layer.file);
  for (const std::string& name : in_file(directory.string(), [&] { return names_at(directory); })) {
    if (name.starts_with('.')) continue;  // a temporary file of a writer that runs or was killed
    if (name.find(".safetensors") != std::string::npos && name != kIndexName &&
        !known.contains(name)) {
      findings.push_back(fmt::format("{}: not in the manifest", (directory / name).string()));
    }
  }
  return findings;
}

}  // namespace mxfp4
