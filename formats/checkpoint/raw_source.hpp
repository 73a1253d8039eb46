// Reads a raw dump: flat files and a manifest.json that says what lies where.
//
//   {"format": "mxfp4-raw", "version": 1, "layout": "checkpoint"|"loaded", "byte_order": "little",
//    "order": "C", "config": "config.json", "family": ..., "w13_order": ..., ...,
//    "tensors": [{"name", "file", "dtype", "shape", "offset", "nbytes", "sha256"}]}
//
// dtypes as in safetensors. Optional: layout, byte_order, order, config, offset (0), sha256.
// Tensors may share a file, with gaps but without overlap.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/checksum/sha256.hpp"
#include "formats/source/source.hpp"

namespace mxfp4 {

struct RawTensor {
  std::string name;
  TensorSpec spec;
  std::string file;    // relative to the manifest
  int64_t offset = 0;  // bytes
  int64_t nbytes = 0;
  std::optional<Sha256Digest> checksum;
};

struct RawManifest {
  std::vector<RawTensor> tensors;
  std::map<std::string, std::string> attributes;  // the manifest's own strings and integers
  std::optional<std::string> config;              // path of config.json, relative to the manifest
};

// Checks everything that needs no other file, overlaps included. Throws Error::input.
[[nodiscard]] RawManifest parse_raw_manifest(std::string_view text);

// True if the file is a JSON object whose "format" is "mxfp4-raw". Never throws for its contents.
[[nodiscard]] bool is_raw_manifest(const std::filesystem::path& path);

// Reads no data: a sha256 is compared when its tensor is first read. Throws Error::input.
[[nodiscard]] std::unique_ptr<Source> open_raw(const std::filesystem::path& manifest);

}  // namespace mxfp4
