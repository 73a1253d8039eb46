// How the engine's object lies around an output's bytes, as far as safetensors cannot say it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace mxfp4 {

// Empty members are not written to the manifest.
struct Storage {
  std::string torch_dtype;  // where it differs from the file's: "float8_e4m3fn"
  std::string layout;       // wrapper class, "HopperMXValueLayout"
  std::string layout_name;  // the constant that the kernel sees, "HOPPER_VALUE"
  std::vector<std::pair<std::string, int64_t>> layout_kwargs;
  std::vector<int64_t> layout_init_shape;
  std::vector<int64_t> storage_shape;
  std::vector<int64_t> storage_strides;
  std::vector<int64_t> logical_shape;
  std::string logical_dtype;       // "fp4_e2m1"
  int64_t slack_bytes = 0;         // readable bytes that a kernel touches past the end
  std::vector<std::string> flags;  // attributes set on the tensor object, "is_shuffled"
};

}  // namespace mxfp4
