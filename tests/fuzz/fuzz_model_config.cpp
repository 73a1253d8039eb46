// libFuzzer target: any text as config.json. Only Error::input may come out.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "formats/model_config.hpp"
#include "lib/core/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    (void)mxfp4::parse_model_config(std::string_view(reinterpret_cast<const char*>(data), size),
                                    "config.json");
  } catch (const mxfp4::Error& error) {
    if (error.kind() != mxfp4::ErrorKind::kInput) std::abort();
  }
  return 0;
}
