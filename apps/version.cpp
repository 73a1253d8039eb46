#include "apps/version.hpp"

#include <fmt/format.h>

#include <CLI/Version.hpp>
#include <nlohmann/json.hpp>

#include "apps/embedded.hpp"
#include "apps/json_output.hpp"
#include "apps/screen.hpp"
#include "formats/blob/seekable_zstd.hpp"
#include "lib/kernels/instruction_sets.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

Json version_json(bool verbose) {
  Json json = json_document("version");
  json["version"] = MXFP4_REPACK_VERSION;
  json["commit"] = text_or_null(std::string(built_from_commit()));
  Json& engines = json["engines"] = Json::object();
  for (const Engine engine : {Engine::kVllm, Engine::kSglang}) {
    const Release& newest = newest_release(engine);
    engines[std::string(engine_name(engine))] = {{"oldest", releases_of(engine).front()->version()},
                                                 {"newest", newest.version()},
                                                 {"date", newest.date}};
  }
  json["instructions"] = kernels::instruction_sets();
  if (!verbose) return json;
  json["libraries"] =
      fmt::format("zstd {}, fmt {}.{}.{}, nlohmann-json {}.{}.{}, CLI11 {}, " MXFP4_LIBRARIES,
                  zstd_library_version(), FMT_VERSION / 10000, FMT_VERSION / 100 % 100,
                  FMT_VERSION % 100, NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                  NLOHMANN_JSON_VERSION_PATCH, CLI11_VERSION);
  return json;
}

}  // namespace

int print_version(const Console& console) {
  const bool verbose = console.verbose() > 0;
  Json json = version_json(verbose);
  if (console.json()) {
    console.result_json(std::move(json));
    return kOk;
  }
  console.result("mxfp4-repack " MXFP4_REPACK_VERSION MXFP4_REPACK_HOME "\n");
  for (const char* name : {"schema_version", "command", "version"}) json.erase(name);
  if (verbose) console.result(fields_text(console, json, 2));
  return kOk;
}

}  // namespace mxfp4
