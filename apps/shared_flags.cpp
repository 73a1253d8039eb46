#include "apps/shared_flags.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <string>
#include <utility>

#include "apps/options.hpp"
#include "formats/config/deployment_json.hpp"
#include "formats/os/file.hpp"
#include "lib/core/deployment_facts.hpp"
#include "lib/core/suggest.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {
namespace {

constexpr const char* kMachineGroup = "The machine that will serve";
constexpr const char* kParallelGroup = "Parallelism";
constexpr const char* kInputGroup = "Input";
constexpr int64_t kMaxFlagFileBytes = int64_t{16} << 20;
constexpr double kMostBytes = 1e18;

enum class Takes : uint8_t { kText, kTexts, kNumber, kNothing };

// A flag that becomes a member of the request, beside those of deployment_facts().
struct MemberRow {
  const char* flag;
  Takes takes;
  const char* group;
  const char* value;
  const char* help;
};
constexpr std::array kMembers = {
    MemberRow{"--backend", Takes::kText, kMachineGroup, "ENUM",
              "Skip the oracle: this backend (list backends)"},
    MemberRow{"--family", Takes::kText, kMachineGroup, "gpt_oss|generic",
              "Converter family; default: from the checkpoint"},
    MemberRow{"--no-lib", Takes::kTexts, kMachineGroup, "NAME",
              "This package is not there; repeatable"},
    MemberRow{"--knob", Takes::kTexts, kMachineGroup, "NAME=VALUE",
              "Layout parameter: params_dtype, marlin_input_dtype, humming_input_dtype, "
              "cuda_compiler, aiter_weight, tp_size; repeatable"},
    MemberRow{
        "--pad", Takes::kText, kMachineGroup, "auto|none|HxI",
        "Round sizes as the backend wants, take them as they are, or pad a rank's to H and I"},
    MemberRow{"--engine", Takes::kText, kMachineGroup, "vllm|sglang",
              "Engine that serves; --revision sglang-NUMBER implies it"},
    MemberRow{"--allow-known-defects", Takes::kNothing, kMachineGroup, "",
              "Accept bytes that the reference is known to get wrong"},
    MemberRow{"--allow-unservable", Takes::kNothing, kMachineGroup, "",
              "Write for a deployment that the engine itself would not serve"},
    MemberRow{"--expert-placement", Takes::kText, kParallelGroup, "linear|round_robin",
              "Which experts a rank holds"},
    MemberRow{"--rank", Takes::kNumber, kParallelGroup, "R", "Only this rank's blob"},
    MemberRow{"--style", Takes::kText, kInputGroup, "NAME",
              "Naming style (list styles); default: detected"},
    MemberRow{"--layers", Takes::kText, kInputGroup, "LIST", "Only these layers: 0-3,7"},
};

// Declares a flag whose value becomes a member of `members`. `names`: "--moe-backend,--other".
CLI::Option* add_member(CLI::App& command, nlohmann::json& members, const std::string& names,
                        Takes takes, const std::string& help) {
  std::string key = names.substr(2, names.find(',') - 2);
  std::ranges::replace(key, '-', '_');
  const auto set = [&members, key](const auto& value) { members[key] = value; };
  switch (takes) {
    case Takes::kNothing:
      return command.add_flag_function(
          names, [set](int64_t count) { set(count > 0); }, help);
    case Takes::kNumber:
      return command.add_option_function<uint64_t>(names, set, help)
          ->transform(key == "rank" ? number_in(0, 65535) : number_in(1, 65536));
    case Takes::kTexts:
      return command.add_option_function<std::vector<std::string>>(names, set, help);
    case Takes::kText:
      break;
  }
  return command.add_option_function<std::string>(names, set, help);
}

Takes taken_by(const FactRow& row) {
  if (row.kind == FactKind::kVariable) return Takes::kTexts;
  if (row.is_switch()) return Takes::kNothing;
  const bool number = std::holds_alternative<FactMembers<int64_t, ParallelConfig>>(row.members);
  return number ? Takes::kNumber : Takes::kText;
}

bool is_parallel(const FactRow& row) { return row.manifest.starts_with("/deployment/"); }

void add_fact(CLI::App& command, RequestFlags& flags, const FactRow& row,
              const std::string& group) {
  const std::string other = row.other_flag.empty() ? "" : fmt::format(",{}", row.other_flag);
  add_member(command, flags.members, std::string(row.flag) + other, taken_by(row),
             std::string(row.help))
      ->option_text(std::string(row.value))
      ->group(group);
}

void add_row(CLI::App& command, RequestFlags& flags, const MemberRow& row,
             const std::string& group) {
  add_member(command, flags.members, row.flag, row.takes, row.help)
      ->option_text(row.value)
      ->group(group);
}

// Declares a flag that names a small file, and calls `use` with its path and text.
template <class Use>
CLI::Option* add_file(CLI::App& command, const std::string& name, const std::string& help,
                      const std::string& group, Use use) {
  return command
      .add_option_function<std::string>(
          name,
          [use](const std::string& path) {
            in_file(path, [&] { use(path, read_text_stream(path, kMaxFlagFileBytes)); });
          },
          help)
      ->option_text("FILE")
      ->group(group);
}

void add_target(CLI::App& command, TargetFile& target, const std::string& group) {
  add_file(command, "--target", "The same facts as JSON, from mxfp4-repack-probe", group,
           [&target](const std::string& path, const std::string& text) {
             target = {path, parse_target(text)};
           });
}

// "256MiB", "8GB", "0.5g" -> bytes; K, M, G and T alone are powers of 1024.
int64_t size_in(const std::string& text, const char* flag) {
  double value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  std::string unit(end, last);
  std::ranges::transform(unit, unit.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const size_t power = unit.empty() ? std::string::npos : std::string_view("kmgt").find(unit[0]);
  const std::string rest = unit.empty() ? "" : unit.substr(1);
  for (size_t i = 0; power != std::string::npos && i <= power; ++i) {
    value *= rest == "b" ? 1000 : 1024;
  }
  const bool known = power != std::string::npos && (rest.empty() || rest == "b" || rest == "ib");
  if (error != std::errc{} || !known || !(value >= 1 && value <= kMostBytes)) {
    throw Error::usage(fmt::format("'{}' is not a size such as 256MiB or 8GB", text)).at_key(flag);
  }
  return static_cast<int64_t>(value);
}

}  // namespace

CLI::Validator one_of(std::string what, std::vector<std::string> known) {
  return {[what = std::move(what), known = std::move(known)](std::string& value) -> std::string {
            if (std::ranges::find(known, value) != known.end()) return "";
            throw unknown_value(what, value, known);
          },
          ""};
}

CLI::Validator number_in(int64_t lowest, int64_t highest) {
  return {[lowest, highest](std::string& value) -> std::string {
            const auto number = whole_number(value);
            if (!number || *number < lowest || *number > highest) {
              return fmt::format("'{}' is not a number from {} to {}", value, lowest, highest);
            }
            value = std::to_string(*number);
            return "";
          },
          ""};
}

void add_global_flags(CLI::App& command, GlobalOptions& options) {
  const std::string when = "auto|always|never";
  add_switch(command, kOutputGroup, "--json", options.json, "One JSON document on stdout");
  add_value(command, kOutputGroup, "--progress", options.progress, "When to draw a progress bar",
            when)
      ->check(one_of("--progress", {"auto", "always", "never"}));
  add_value(command, kOutputGroup, "--color", options.color,
            "When to use colour (NO_COLOR is honoured)", when)
      ->check(one_of("--color", {"auto", "always", "never"}));
  const char* more = command.get_name() == "explain"   ? "Show every condition"
                     : command.get_name() == "convert" ? "Show the oracle's trace"
                                                       : "Say more";
  CLI::Option* verbose = command.add_flag("-v", options.verbose, more)->group(kOutputGroup);
  add_switch(command, kOutputGroup, "-q,--quiet", options.quiet, "Say only what goes wrong")
      ->excludes(verbose);
}

void add_request_flags(CLI::App& command, RequestFlags& flags) {
  for (const bool machine : {true, false}) {  // the machine first, which most people give
    for (const FactRow& row : deployment_facts()) {
      if (row.flag.empty() || machine != (row.kind == FactKind::kMachine)) continue;
      add_fact(command, flags, row, is_parallel(row) ? kParallelGroup : kMachineGroup);
    }
  }
  add_target(command, flags.target, kMachineGroup);
  for (const MemberRow& row : kMembers) add_row(command, flags, row, row.group);
  add_model_config(command, flags.model_config, kInputGroup);
  command.get_option("--backend")->excludes(command.get_option("--moe-backend"));
}

void add_fit_flags(CLI::App& command, RequestFlags& flags) {
  const std::string group = "What differs from the blob's own deployment";
  add_target(command, flags.target, group);
  for (const FactRow& row : deployment_facts()) {
    const bool asked = row.kind == FactKind::kEngine || row.kind == FactKind::kMachine ||
                       row.kind == FactKind::kPlatform || row.kind == FactKind::kMoeBackend ||
                       row.kind == FactKind::kPackage || row.kind == FactKind::kVariable;
    if (asked || is_parallel(row)) add_fact(command, flags, row, group);
  }
  add_row(command, flags,
          *std::ranges::find(kMembers, std::string_view("--engine"), &MemberRow::flag), group);
}

CLI::Option* add_style_flag(CLI::App& command, RequestFlags& flags, const std::string& group) {
  return add_member(command, flags.members, "--style", Takes::kText, "Naming style of INPUT")
      ->option_text("NAME")
      ->group(group);
}

CLI::Option* add_model_config(CLI::App& command, FlagFile& file, const std::string& group) {
  return add_file(command, "--model-config", "config.json for an input that carries none", group,
                  [&file](const std::string& path, const std::string& text) {
                    file = {path, text};
                  });
}

void add_resource_flags(CLI::App& command, RunLimits& options) {
  const std::string group = "Resources";
  add_value(command, group, "-j,--threads", options.threads,
            "Workers; default: the CPUs of this process", "N")
      ->transform(number_in(1, 1024));
  command
      .add_option_function<std::string>(
          "--memory",
          [&options](const std::string& text) { options.memory = size_in(text, "--memory"); },
          "Budget for buffers; default 64MiB a thread, at least 256MiB")
      ->option_text("SIZE")
      ->group(group);
}

std::vector<std::string> given_flags(const CLI::App& command) {
  std::vector<std::string> given;
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0 || option->get_group() == kOutputGroup) continue;
    if (option->get_items_expected_max() == 0 && !option->as<bool>()) continue;
    given.push_back(option->get_name());
  }
  return given;
}

void check_values(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    option->allow_extra_args(false)->check([name](const std::string& value) -> std::string {
      return value.empty() ? fmt::format("{}: the value is empty", name) : "";
    });
  }
}

}  // namespace mxfp4
