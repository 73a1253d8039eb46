#include "apps/explain/explain_next.hpp"

#include <fmt/format.h>

#include <set>

#include "apps/change_words.hpp"
#include "apps/text_layout.hpp"
#include "formats/decision/config_only.hpp"
#include "formats/decision/next_step.hpp"

namespace mxfp4 {
namespace {

const std::set<std::string> kOfExplain = {kInputName, "--against", "--all", "--history"};

std::string input_word(const ExplainOptions& options) {
  const std::filesystem::path& path = options.input.path;
  return path.empty() || config_without_weights(path) ? "CHECKPOINT"
                                                      : shell_word(options.input.path.string());
}

// The command that shows the sizes because of which the conversion is refused.
std::vector<std::string> inspect_command(const ExplainOptions& options) {
  static const std::set<std::string> kOfInput = {"--style", "--model-config", "--layers",
                                                 "--family"};
  std::vector<std::string> parts{"mxfp4-repack inspect " + input_word(options)};
  for (const GivenFlag& flag : options.given) {
    if (!kOfInput.contains(flag.name)) continue;
    for (const std::string& value : flag.values) {
      parts.push_back(fmt::format("{} {}", flag.name, shell_word(value)));
    }
  }
  return parts;
}

// The command that converts after these changes.
std::vector<std::string> convert_command(const ExplainOptions& options,
                                         const ConversionRequest& request,
                                         const OpenedCheckpoint* checkpoint,
                                         const Conversion& conversion,
                                         const std::vector<Change>& changes) {
  std::set<std::string> skip = kOfExplain;
  if (!changes.empty()) skip.insert("--backend");
  std::vector<std::string> parts{
      fmt::format("mxfp4-repack convert {} -o OUT", input_word(options))};
  for (std::string& flag :
       changed_flags(options.given, asker_of(request, conversion, checkpoint), changes, skip)) {
    parts.push_back(std::move(flag));
  }
  return parts;
}

}  // namespace

NextCommand next_command(const ExplainOptions& options, const ConversionRequest& request,
                         const OpenedCheckpoint* checkpoint, const DecidedConversion& conversion) {
  const NextStep next = next_step(request, conversion, checkpoint, conversion.working);
  switch (next.command) {
    case NextStep::Command::kInspect:
      return {inspect_command(options), input_word(options), {}};
    case NextStep::Command::kListBackends:
      return {{"mxfp4-repack list backends"}, input_word(options), {}};
    case NextStep::Command::kConvert:
      break;
  }
  NextCommand command{convert_command(options, request, checkpoint, conversion, next.changes),
                      input_word(options),
                      {}};
  for (const Change& change : next.changes) command.changed.push_back(change_words(change));
  const auto replace = [&](std::string_view flag, const auto& value) {
    const std::string begin = fmt::format("{} ", flag);
    std::erase_if(command.parts, [&](const std::string& part) { return part.starts_with(begin); });
    command.parts.push_back(fmt::format("{}{}", begin, value));
    command.changed.push_back(command.parts.back());
  };
  if (next.allow_known_defects) {
    command.parts.emplace_back("--allow-known-defects");
    command.changed.push_back(command.parts.back());
  }
  if (next.release != nullptr) replace("--revision", next.release->name);
  if (!next.sizes.values.empty()) replace(flag_of(next.sizes.size), next.sizes.values.front());
  return command;
}

}  // namespace mxfp4
