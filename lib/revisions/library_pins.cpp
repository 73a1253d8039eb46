#include "lib/revisions/library_pins.hpp"

#include <fmt/format.h>

namespace mxfp4 {
namespace {

std::string_view platform_note(const LibraryPin& pin) {
  if (!pin.platform) return "";
  return *pin.platform == Platform::kRocm ? " (ROCm)" : " (CUDA)";
}

}  // namespace

std::string pins_text(std::span<const LibraryPin> pins) {
  std::string text;
  for (const LibraryPin& pin : pins) {
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", pin.library, pin.version,
                        platform_note(pin));
  }
  return text;
}

}  // namespace mxfp4
