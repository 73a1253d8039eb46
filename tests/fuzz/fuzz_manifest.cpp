// libFuzzer target: any text as the members of a blob's manifest; the checksum that ends a manifest
// is added, or nothing would get past it. What is accepted is written and read again.
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "formats/checksum.hpp"
#include "formats/manifest.hpp"
#include "lib/core/error.hpp"

namespace {

std::string sealed(const std::string& text) {
  const size_t at = std::min(text.rfind(mxfp4::kManifestSeal), text.size());
  const std::string content = text.substr(0, at);
  mxfp4::Checksum sum;
  sum.update(std::as_bytes(std::span(content)));
  return fmt::format("{}{}{}\"\n}}\n", content, mxfp4::kManifestSeal, sum.hex());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const std::string& manifest : {text, sealed(text)}) {
    try {
      const std::string written = mxfp4::write_manifest(mxfp4::parse_manifest(manifest));
      if (mxfp4::write_manifest(mxfp4::parse_manifest(written)) != written) std::abort();
    } catch (const mxfp4::Error& error) {
      if (error.kind() != mxfp4::ErrorKind::kInput) std::abort();
    }
  }
  return 0;
}
