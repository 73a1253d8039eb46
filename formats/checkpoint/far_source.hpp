// A safetensors checkpoint on another machine. Opening it fetches the headers, the index and
// config.json; a file that a hub's cache holds is read there.
#pragma once

#include <memory>
#include <string>

#include "formats/source/source.hpp"

namespace mxfp4 {

// `address` as far_folder.hpp has it. Throws Error::input, and Error::usage for another form.
[[nodiscard]] std::unique_ptr<Source> open_far_source(const std::string& address);

}  // namespace mxfp4
