#include "apps/shared_flags.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "apps/options.hpp"
#include "apps/parsers.hpp"
#include "apps/suggest.hpp"
#include "lib/core/deployment_facts.hpp"

namespace mxfp4 {
namespace {

constexpr const char* kTargetText = "The same facts as JSON, from scripts/probe-target";

// `File` is made from a path.
template <class File>
void add_path(CLI::App& command, const std::string& name, File& file, const std::string& text,
              const std::string& group) {
  command
      .add_option_function<std::string>(
          name, [&file](const std::string& path) { file = File(path); }, text)
      ->option_text("FILE")
      ->group(group);
}

// Declares the flag of a deployment fact, with its words from the table.
template <class Value>
CLI::Option* add_fact(CLI::App& command, const FactRow& row, Value& value,
                      const std::string& group) {
  const std::string other = row.other_flag.empty() ? "" : fmt::format(",{}", row.other_flag);
  return command.add_option(std::string(row.flag) + other, value, std::string(row.help))
      ->option_text(std::string(row.value))
      ->group(group);
}

void add_fact(CLI::App& command, const FactRow& row, std::optional<int64_t>& value,
              const std::string& group) {
  add_fact<std::optional<int64_t>>(command, row, value, group)->transform(number_in(1, 65536));
}

void add_fact(CLI::App& command, const FactRow& row, std::optional<bool>& value,
              const std::string& group) {
  const std::string name(row.flag);
  const std::string help(row.help);
  command.add_flag(name, help)
      ->each([&value, name](const std::string& text) {
        try {
          value = CLI::detail::to_flag_value(text) > 0;
        } catch (const std::invalid_argument&) {
          throw CLI::ConversionError(text, name);
        }
      })
      ->group(group);
}

const FactRow& row_of(FactKind kind) {
  const FactRow* row = find_fact(kind);
  if (row == nullptr) throw Error::internal("a flag of a fact without a row");
  return *row;
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

void add_file(CLI::App& command, const std::string& name, FlagFile& file, const std::string& text,
              const std::string& group) {
  add_path(command, name, file, text, group);
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

void add_engine_flag(CLI::App& command, std::string& engine, const std::string& group) {
  add_value(command, group, "--engine", engine,
            "Engine that serves; --revision sglang-NUMBER implies it", "vllm|sglang")
      ->check(one_of("--engine", {"vllm", "sglang"}));
}

void add_machine_flags(CLI::App& command, RequestFlags& options) {
  const std::string group = "The machine that will serve";
  const auto fact = [&](FactKind kind, auto& value) {
    return add_fact(command, row_of(kind), value, group);
  };
  fact(FactKind::kMachine, options.arch);
  fact(FactKind::kPlatform, options.platform);
  add_path(command, "--target", options.target_file, kTargetText, group);
  for_each_fact_of<Deployment>([&](const FactRow& row, auto members) {
    add_fact(command, row, options.facts.*members.given, group);
  });
  add_value(command, group, "--backend", options.backend,
            "Skip the oracle: this backend (list backends)", "ENUM")
      ->excludes(command.get_option(std::string(row_of(FactKind::kMoeBackend).flag)));
  add_value(command, group, "--family", options.family,
            "Converter family; default: from the checkpoint", "gpt_oss|generic");
  fact(FactKind::kSelector, options.selector);
  fact(FactKind::kActivationKey, options.quantization_config);
  fact(FactKind::kPackage, options.libs);
  add_value(command, group, "--no-lib", options.no_libs, "This package is not there; repeatable",
            "NAME");
  fact(FactKind::kVariable, options.env);
  add_value(command, group, "--knob", options.knobs,
            "Layout parameter: params_dtype, marlin_input_dtype, humming_input_dtype, "
            "cuda_compiler, aiter_weight, tp_size; repeatable",
            "NAME=VALUE");
  add_value(command, group, "--pad", options.pad,
            "Round sizes as the backend wants, take them as they are, or pad a rank's to H and I",
            "auto|none|HxI");
  add_engine_flag(command, options.engine, group);
  fact(FactKind::kEngine, options.revision);
  add_switch(command, group, "--allow-known-defects", options.allow_known_defects,
             "Accept bytes that the reference is known to get wrong");
  add_switch(command, group, "--allow-unservable", options.allow_unservable,
             "Write for a deployment that the engine itself would not serve");
}

void add_fit_flags(CLI::App& command, RequestFlags& options) {
  const std::string group = "What differs from the blob's own deployment";
  const auto fact = [&](FactKind kind, auto& value) {
    return add_fact(command, row_of(kind), value, group);
  };
  add_engine_flag(command, options.engine, group);
  fact(FactKind::kEngine, options.revision)
      ->description("Release of the engine that serves (list revisions); default: the blob's own");
  add_path(command, "--target", options.target_file, kTargetText, group);
  fact(FactKind::kMachine, options.arch);
  fact(FactKind::kPlatform, options.platform);
  fact(FactKind::kMoeBackend, options.facts.moe_backend);
  fact(FactKind::kPackage, options.libs);
  fact(FactKind::kVariable, options.env);
  for_each_fact_of<ParallelConfig>([&](const FactRow& row, auto members) {
    add_fact(command, row, options.facts.*members.given, group);
  });
}

void add_parallel_flags(CLI::App& command, RequestFlags& options) {
  const std::string group = "Parallelism";
  for_each_fact_of<ParallelConfig>([&](const FactRow& row, auto members) {
    add_fact(command, row, options.facts.*members.given, group);
  });
  add_value(command, group, "--expert-placement", options.expert_placement,
            "Which experts a rank holds", "linear|round_robin")
      ->check(one_of("--expert-placement", {"linear", "round_robin"}));
  add_value(command, group, "--rank", options.rank, "Only this rank's blob", "R")
      ->transform(number_in(0, 65535));
}

void add_input_flags(CLI::App& command, InputOptions& options) {
  const std::string group = "Input";
  add_value(command, group, "--style", options.style,
            "Naming style (list styles); default: detected", "NAME");
  add_file(command, "--model-config", options.model_config,
           "config.json for an input that carries none", group);
  add_value(command, group, "--layers", options.layers, "Only these layers: 0-3,7", "LIST");
}

void add_resource_flags(CLI::App& command, RunLimits& options) {
  const std::string group = "Resources";
  add_value(command, group, "-j,--threads", options.threads,
            "Workers; default: the CPUs of this process", "N")
      ->transform(number_in(1, 1024));
  command
      .add_option_function<std::string>(
          "--memory",
          [&options](const std::string& text) { options.memory = parse_size(text, "--memory"); },
          "Budget for buffers; default 64MiB a thread, at least 256MiB")
      ->option_text("SIZE")
      ->group(group);
}

std::vector<GivenFlag> given_flags(const CLI::App& command) {
  std::vector<GivenFlag> given;
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0 || option->get_group() == kOutputGroup) continue;
    const bool is_switch = option->get_items_expected_max() == 0;
    if (is_switch && !option->as<bool>()) continue;
    given.push_back(
        {option->get_name(), is_switch ? std::vector<std::string>() : option->results()});
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
