// What an address names: a folder of files on another machine, and how to ask for them.
//
//   https://HOST/DIR/           a plain server; http:// too
//   hf://ORG/MODEL[@REVISION]   a hub, with HF_ENDPOINT, HF_TOKEN and the others of its client
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/remote/fetcher.hpp"

namespace mxfp4 {

// Whether a text is an address, not a path: it has a scheme.
[[nodiscard]] bool is_address(std::string_view text);

struct FarFolder {
  std::string address;  // as it was given, without "/" at its end
  std::string base;     // URL of a file without its name
  std::shared_ptr<const FarAccess> access;
  std::vector<std::string> names{};  // of files
  bool listed = true;                // false: `names` are files that are there, of perhaps more
  std::filesystem::path cache{};     // a hub's cache of the same commit; what it has is not fetched
  bool offline = false;              // nothing may be fetched

  // A file, whether or not it is there.
  [[nodiscard]] std::shared_ptr<FarFile> file(const std::string& name) const;
  // The file in the cache; empty if it is not there.
  [[nodiscard]] std::filesystem::path cached(const std::string& name) const;
};

// Throws Error::input naming the address, Error::usage for an address of another form.
[[nodiscard]] FarFolder open_far_folder(Fetcher& fetcher, const std::string& address);

// A hub's folder; `place` is what follows the scheme.
[[nodiscard]] FarFolder open_hub_folder(Fetcher& fetcher, std::string_view place);

// A variable of the environment; empty if it is not set.
[[nodiscard]] std::string variable(const char* name);

}  // namespace mxfp4
