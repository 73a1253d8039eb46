// What an address names: a folder of files on another machine, and how to ask for them.
//
//   https://HOST/DIR/           a plain server; http:// too
//   hf://ORG/MODEL[@REVISION]   a hub, with HF_ENDPOINT, HF_TOKEN and the others of its client
//   s3://BUCKET/PREFIX          object storage, with AWS_ACCESS_KEY_ID and the others of its clients
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "formats/remote/fetcher.hpp"

namespace mxfp4 {

struct FarFolder {
  std::string base;  // URL of a file without its name
  std::shared_ptr<const FarAccess> access;
  std::vector<std::string> names{};  // of files; "FOLDER/NAME" in a folder of it
  bool listed = true;                // false: what is there is not known
  std::filesystem::path cache{};     // a hub's cache of the same commit; what it has is not fetched
  bool offline = false;              // nothing may be fetched
};

// The folder of which an address names a file or a folder: of a hub's, the model.
[[nodiscard]] std::string root_of(const std::string& address);
// `root`: as root_of() gives it. Throws Error::input, Error::usage for an address of another form.
[[nodiscard]] FarFolder open_far_folder(Fetcher& fetcher, const std::string& root);

// The folders of hubs and of object storage; `place` is what follows the scheme.
[[nodiscard]] FarFolder open_hub_folder(Fetcher& fetcher, std::string_view place);
[[nodiscard]] FarFolder open_s3_folder(Fetcher& fetcher, std::string_view place);

// A variable of the environment; empty if it is not set.
[[nodiscard]] std::string variable(const char* name);
// A small answer, and the text of a small file of the user's, empty if there is none.
[[nodiscard]] std::string fetch_text(Fetcher& fetcher, FarFile file);
[[nodiscard]] std::string user_text(const std::filesystem::path& path);

}  // namespace mxfp4
