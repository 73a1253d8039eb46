#include "formats/conversion/model_directory.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>

#include "formats/json/packed_config.hpp"
#include "formats/source/source.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {

namespace fs = std::filesystem;

RestPlan plan_model_directory(const OpenedCheckpoint& checkpoint,
                              std::vector<std::string>& warnings) {
  if (checkpoint.source->origin() != nullptr) {
    throw Error::unsupported(
        "--include-rest: the input is a blob, and only a checkpoint has the rest of a model")
        .hint("copy the rest of the model's directory, or convert the checkpoint");
  }
  RestPlan rest = plan_rest(*checkpoint.source, checkpoint.model.rest);
  std::vector<SideFile> side;
  if (checkpoint.source->is_far()) {
    side = fetch_side_files(checkpoint.path, warnings);
  } else if (checkpoint.source->kind() == "safetensors") {
    std::error_code error;
    const bool one_file = !fs::is_directory(checkpoint.path, error);
    if (error) {
      throw Error::input(fmt::format("cannot be examined: {}", error.message()))
          .in_file(checkpoint.path.string());
    }
    if (!one_file) side = find_side_files(checkpoint.path, warnings);
  }
  std::erase_if(side, [](const SideFile& file) { return file.name == kConfigName; });
  if (checkpoint.config_text) {
    std::string text =
        in_context(kConfigName, [&] { return packed_config_text(*checkpoint.config_text); });
    const auto size = static_cast<int64_t>(text.size());
    side.push_back({.name = kConfigName, .from = {}, .text = std::move(text), .size = size});
  } else {
    warnings.emplace_back("the input has no config.json, so OUT has none");
  }
  rest.side.insert(rest.side.end(), side.begin(), side.end());
  if (checkpoint.layers_left_out > 0) {
    warnings.push_back(fmt::format("OUT lacks the experts of {} layer{}, which --layers leaves out",
                                   checkpoint.layers_left_out,
                                   checkpoint.layers_left_out == 1 ? "" : "s"));
  }
  return rest;
}

std::vector<std::string> compare_rest(const OpenedCheckpoint& input,
                                      const fs::path& model_directory, const Manifest& manifest,
                                      const RunHooks& hooks) {
  std::vector<std::string> findings;
  if (manifest.rest.empty()) return findings;  // made without --include-rest
  std::vector<std::string> ignored;            // convert has warned
  const RestPlan plan = plan_model_directory(input, ignored);
  const auto add = [&](const ManifestFile& file, std::string_view what) {
    findings.push_back(fmt::format("{}: {}", (model_directory / file.name).string(), what));
  };
  std::map<std::string, ManifestFile> made;
  for (ManifestFile& file : sum_rest(*input.source, plan, hooks.check_stop)) made[file.name] = file;
  for (const ManifestFile& file : manifest.rest) {
    const auto found = made.extract(file.name);
    if (found.empty()) {
      add(file, "the input has no such file or tensors for it");
    } else if (found.mapped().xxh3_128 != file.xxh3_128) {
      add(file, "is not what convert makes of the input");
    }
  }
  for (const auto& [name, file] : made) add(file, "missing, the input has it");
  input.source->check_unchanged();
  return findings;
}

}  // namespace mxfp4
