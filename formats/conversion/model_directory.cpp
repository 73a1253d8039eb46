#include "formats/conversion/model_directory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "formats/config/packed_config.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {

namespace fs = std::filesystem;

RestPlan plan_model_directory(const OpenedCheckpoint& checkpoint,
                              std::vector<std::string>& warnings) {
  RestPlan rest = plan_rest(*checkpoint.source, checkpoint.model.rest);
  std::vector<SideFile> side;
  std::error_code ignored;
  if (checkpoint.source->kind() == "safetensors" && fs::is_directory(checkpoint.path, ignored)) {
    side = find_side_files(checkpoint.path, warnings);
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

}  // namespace mxfp4
