// A model on a hub, as the hub's own client finds it: endpoint, token and cache come from the same
// variables (huggingface_hub, constants.py and file_download.py, read for their names only).
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "formats/json/json_fields.hpp"
#include "formats/json/strict_json.hpp"
#include "formats/remote/far_folder.hpp"
#include "formats/remote/url.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUsualEndpoint = "https://huggingface.co";

// "ORG/MODEL@REVISION"
struct HubModel {
  std::string name;
  std::string revision = "main";
};

HubModel parse_model(std::string_view place) {
  HubModel model;
  const size_t at = place.find('@');
  if (at != std::string_view::npos) model.revision = place.substr(at + 1);
  model.name = place.substr(0, at);
  const bool two = std::ranges::count(model.name, '/') == 1 && model.name.front() != '/' &&
                   model.name.back() != '/';
  if (two && !model.revision.empty()) return model;
  throw Error::usage(
      fmt::format("hf://{}: expected hf://ORG/MODEL or hf://ORG/MODEL@REVISION", place));
}

// The first word of a small file; empty if there is none.
std::string word_of(const fs::path& path) {
  const std::string text = user_text(path);
  return text.substr(0, text.find_first_of(" \r\n"));
}

fs::path hub_home() {
  if (const std::string home = variable("HF_HOME"); !home.empty()) return home;
  const std::string cache = variable("XDG_CACHE_HOME");
  return (cache.empty() ? fs::path(variable("HOME")) / ".cache" : fs::path(cache)) / "huggingface";
}

std::string hub_token() {
  if (std::string token = variable("HF_TOKEN"); !token.empty()) return token;
  const std::string path = variable("HF_TOKEN_PATH");
  return word_of(path.empty() ? hub_home() / "token" : fs::path(path));
}

// The cache's folder of a model.
fs::path cache_of(const HubModel& model) {
  const std::string given = variable("HF_HUB_CACHE");
  std::string folder = "models--" + model.name;
  folder.replace(folder.find('/'), 1, "--");
  return (given.empty() ? hub_home() / "hub" : fs::path(given)) / folder;
}

bool is_offline() {
  std::string value = variable("HF_HUB_OFFLINE");
  for (char& c : value) c = static_cast<char>(c & ~0x20);  // letters in upper case; "1" aside
  return variable("HF_HUB_OFFLINE") == "1" || value == "TRUE" || value == "YES" || value == "ON";
}

// A model of which nothing may be fetched.
FarFolder open_cached(const HubModel& model) {
  const fs::path cache = cache_of(model);
  const std::string commit = word_of(cache / "refs" / model.revision);
  FarFolder folder{.base = {}, .access = std::make_shared<FarAccess>()};
  folder.cache = cache / "snapshots" / (commit.empty() ? model.revision : commit);
  folder.offline = true;
  std::error_code error;
  const fs::recursive_directory_iterator end;
  for (fs::recursive_directory_iterator at(folder.cache, error); !error && at != end;
       at.increment(error)) {
    folder.names.push_back(at->path().lexically_relative(folder.cache).string());
  }
  if (!error) return folder;
  throw Error::input(fmt::format("not in the hub's cache, {}, and HF_HUB_OFFLINE is set",
                                 cache.parent_path().string()));
}

std::shared_ptr<const FarAccess> access_to(const HubModel& model, const std::string& endpoint) {
  FarAccess access{.bearer = hub_token()};
  access.missing =
      fmt::format("is there a model {} with a revision {}?", model.name, model.revision);
  if (access.bearer.empty()) {
    access.refused = "HF_TOKEN is not set; `hf auth login` stores one, too";
  } else if (!is_private(endpoint)) {
    access.refused = "the token of HF_TOKEN goes over https only";
  } else {
    access.refused =
        fmt::format("the token of HF_TOKEN may not read it: {}/{} says how to ask for access",
                    endpoint, model.name);
  }
  return std::make_shared<FarAccess>(std::move(access));
}

}  // namespace

FarFolder open_hub_folder(Fetcher& fetcher, std::string_view place) {
  const HubModel model = parse_model(place);
  if (is_offline()) return open_cached(model);
  std::string endpoint = variable("HF_ENDPOINT");
  if (endpoint.empty()) endpoint = kUsualEndpoint;
  while (endpoint.ends_with('/')) endpoint.pop_back();
  const std::string name = escaped(model.name, "/");
  FarFolder folder{.base = {}, .access = access_to(model, endpoint)};
  FarFile listing{
      .name = fmt::format("hf://{}", place),
      .url = fmt::format("{}/api/models/{}/revision/{}", endpoint, name, escaped(model.revision)),
      .access = folder.access};
  const std::string text = fetch_text(fetcher, listing);
  return in_file(listing.url, [&] {
    const nlohmann::json json = parse_strict_json(text);
    const JsonFields fields(json);
    const std::string commit = fields.string("sha");
    if (commit.empty() || commit.find_first_not_of("0123456789abcdef") != std::string::npos) {
      throw Error::input("sha: not a commit");
    }
    fields.each("siblings",
                [&](const JsonFields& file) { folder.names.push_back(file.string("rfilename")); });
    folder.base = fmt::format("{}/{}/resolve/{}/", endpoint, name, commit);
    folder.cache = cache_of(model) / "snapshots" / commit;
    return folder;
  });
}

}  // namespace mxfp4
