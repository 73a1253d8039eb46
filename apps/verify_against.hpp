// verify --against: every byte of a blob made anew from its input and compared.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/console.hpp"
#include "apps/options.hpp"
#include "formats/blob/manifest.hpp"
#include "formats/source/source.hpp"

namespace mxfp4 {

// Compares one rank's blob in `directory` with what `source`, opened for options.against, gives:
// sizes, slice and names first, then every byte. Returns every difference in words, in an order
// that does not depend on threads. Throws Error::input when the input itself is damaged.
[[nodiscard]] std::vector<std::string> compare_with_input(const std::shared_ptr<Source>& source,
                                                          const std::filesystem::path& directory,
                                                          const Manifest& manifest,
                                                          const VerifyOptions& options,
                                                          Progress& progress);

}  // namespace mxfp4
