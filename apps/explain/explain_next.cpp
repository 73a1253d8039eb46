#include "apps/explain/explain_next.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "apps/serve_line.hpp"
#include "apps/text_layout.hpp"
#include "formats/decision/config_only.hpp"

namespace mxfp4 {
namespace {

const std::set<std::string> kOfExplain = {kInputName, "--against"};

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

// The command that converts as it was asked for.
std::vector<std::string> convert_command(const ExplainOptions& options) {
  std::vector<std::string> parts{
      fmt::format("mxfp4-repack convert {} -o OUT", input_word(options))};
  for (const GivenFlag& flag : options.given) {
    if (kOfExplain.contains(flag.name)) continue;
    for (std::string& words : as_typed({flag})) parts.push_back(std::move(words));
  }
  return parts;
}

// The nearest of the sizes that work, a smaller one if there is one.
int64_t nearest_size(const ExplainOptions& options, const WorkingSizes& working) {
  const int64_t asked = (options.deployment.facts.*working.size).value_or(1);
  const auto above = std::ranges::upper_bound(working.values, asked);
  return above == working.values.begin() ? *above : *(above - 1);
}

}  // namespace

NextCommand next_command(const ExplainOptions& options, bool has_checkpoint,
                         const DecidedConversion& conversion) {
  const std::filesystem::path& input = options.input.path;
  const bool only_config = input.empty() || config_without_weights(input);
  NextCommand command{
      convert_command(options), only_config ? "CHECKPOINT" : served_name(input), {}};
  if (!conversion.refusal) return command;
  if (!conversion.working.values.empty()) {
    const std::string begin = fmt::format("{} ", flag_of(conversion.working.size));
    std::erase_if(command.parts, [&](const std::string& part) { return part.starts_with(begin); });
    command.parts.push_back(fmt::format("{}{}", begin, nearest_size(options, conversion.working)));
    command.changed.push_back(command.parts.back());
    return command;
  }
  const bool sizes = conversion.layout != nullptr && has_checkpoint;
  command.parts =
      sizes ? inspect_command(options) : std::vector<std::string>{"mxfp4-repack list backends"};
  return command;
}

}  // namespace mxfp4
