#include "apps/version.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/Version.hpp>
#include <nlohmann/json.hpp>
#include <span>

#include "apps/embedded.hpp"
#include "apps/json_output.hpp"
#include "apps/text_layout.hpp"
#include "formats/blob/seekable_zstd.hpp"
#include "lib/kernels/instruction_sets.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {

std::string version_text(bool verbose) {
  std::string out = "mxfp4-repack " MXFP4_REPACK_VERSION "\n";
  if (!verbose) return out;
  const auto field = [&](std::string_view name, std::string_view text) {
    append_wrapped(out, fmt::format("  {:<14}", name), 16, text);
  };
  if (!built_from_commit().empty()) field("commit", built_from_commit());
  for (const Engine engine : {Engine::kVllm, Engine::kSglang}) {
    const Release& newest = newest_release(engine);
    field(engine_title(engine),
          fmt::format("{} to {} of {}, the newest release known",
                      releases_of(engine).front()->version(), newest.version(), newest.date));
  }
  field("layouts", fmt::format("{}", all_layouts().size()));
  field("libraries",
        fmt::format("zstd {}, fmt {}.{}.{}, nlohmann-json {}.{}.{}, CLI11 {}, " MXFP4_LIBRARIES,
                    zstd_library_version(), FMT_VERSION / 10000, FMT_VERSION / 100 % 100,
                    FMT_VERSION % 100, NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                    NLOHMANN_JSON_VERSION_PATCH, CLI11_VERSION));
  const std::vector<std::string> sets = kernels::instruction_sets();
  field("instructions", fmt::format("{}; here: {}", sets.front(), fmt::join(sets, ", ")));
  return out;
}

Json version_json() {
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
  return json;
}

}  // namespace mxfp4
