#include "apps/shared_flags.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <utility>

#include "apps/options.hpp"
#include "apps/suggest.hpp"

namespace mxfp4 {
namespace {

constexpr const char* kOutputGroup = "Output";

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
  command.add_flag("--json", options.json, "One JSON document on stdout")->group(kOutputGroup);
  command.add_option("--progress", options.progress, "When to draw a progress bar")
      ->check(one_of("--progress", {"auto", "always", "never"}))
      ->option_text("auto|always|never")
      ->group(kOutputGroup);
  command.add_option("--color", options.color, "When to use colour (NO_COLOR is honoured)")
      ->check(one_of("--color", {"auto", "always", "never"}))
      ->option_text("auto|always|never")
      ->group(kOutputGroup);
  CLI::Option* verbose = command
                             .add_flag("-v", options.verbose,
                                       command.get_name() == "explain"   ? "Show every condition"
                                       : command.get_name() == "convert" ? "Show the oracle's trace"
                                                                         : "Say more")
                             ->group(kOutputGroup);
  command.add_flag("-q,--quiet", options.quiet, "Say only what goes wrong")
      ->excludes(verbose)
      ->group(kOutputGroup);
}

Error empty_value(const std::string& name) {
  Error error = Error::usage(fmt::format("{}: the value is empty", name));
  if (name == "--libs") error.hint(fmt::format("--libs {} means no package", kNoLibs));
  return error;
}

void add_machine_flags(CLI::App& command, RequestFlags& options) {
  const std::string group = "The machine that will serve";
  const auto add = [&](const std::string& name, auto& value, const std::string& text,
                       const std::string& kind) {
    return command.add_option(name, value, text)->option_text(kind)->group(group);
  };
  add("--arch", options.arch, "GPU or CPU: sm90, H100, gfx950, x86_64 (list machines)", "ARCH");
  add("--platform", options.platform, "Follows from --arch where it can",
      "cuda|rocm|xpu|cpu|other");
  add_path(command, "--target", options.target_file,
           "The same facts as JSON, from scripts/probe-target", group);
  CLI::Option* asked =
      add("--moe-backend", options.moe_backend, "The engine's --moe-backend; default auto", "NAME");
  add("--backend", options.backend, "Skip the oracle: this backend (list backends)", "ENUM")
      ->excludes(asked);
  add("--family", options.family, "Converter family; default: from the checkpoint",
      "gpt_oss|generic");
  add("--selector", options.selector, "Selection function; default: from the checkpoint",
      "gpt_oss|deepseek_v4");
  add("--quantization-config", options.quantization_config,
      "The engine's override object, e.g. {\"moe\": {\"activation\": \"mxfp8\"}}", "FILE|JSON");
  add("--libs", options.libs, "Kernel packages on that machine; default: the stock set",
      "LIST|none");
  add("--no-lib", options.no_libs, "This package is not there; repeatable", "NAME");
  add("--activation", options.activation, "Activation function of the experts", "NAME");
  add("--routing-method", options.routing_method, "Default: from the checkpoint", "NAME");
  add("--env", options.env, "Environment variable of the serving process; repeatable",
      "NAME=VALUE");
  add("--knob", options.knobs,
      "Layout parameter: params_dtype, marlin_input_dtype, humming_input_dtype, cuda_compiler, "
      "aiter_weight, tp_size; repeatable",
      "NAME=VALUE");
  add("--pad", options.pad, "Round sizes as the backend wants, or take them as they are",
      "auto|none")
      ->check(one_of("--pad", {"auto", "none"}));
  add("--revision", options.revision,
      "vLLM release that serves (list revisions); default: the newest", "NAME");
  command
      .add_flag("--allow-known-defects", options.allow_known_defects,
                "Accept bytes that the reference is known to get wrong")
      ->group(group);
  command
      .add_flag("--allow-unservable", options.allow_unservable,
                "Write for a deployment that the engine itself would not serve")
      ->group(group);
}

void add_parallel_flags(CLI::App& command, RequestFlags& options) {
  const std::string group = "Parallelism";
  const auto size = [&](const std::string& name, int64_t& value, const std::string& text) {
    command.add_option(name, value, text)
        ->transform(number_in(1, 65536))
        ->option_text("N")
        ->group(group);
  };
  size("--tp-size", options.tp_size, "Tensor parallel size");
  size("--dp-size", options.dp_size, "Data parallel size");
  size("--pcp-size", options.pcp_size, "Prefill context parallel size");
  const auto flag = [&](const std::string& name, bool& value, const std::string& text) {
    command.add_flag(name, value, text)->group(group);
  };
  command.add_option("--all2all-backend", options.all2all_backend, "All-to-all kernels")
      ->option_text("NAME")
      ->group(group);
  flag("--enable-expert-parallel", options.enable_expert_parallel,
       "Split by experts instead of rows");
  flag("--enable-eplb", options.enable_eplb, "Expert load balancing");
  flag("--sequence-parallel", options.sequence_parallel, "Sequence parallel MoE");
  flag("--enable-lora", options.enable_lora, "LoRA adapters");
  command.add_option("--expert-placement", options.expert_placement, "Which experts a rank holds")
      ->check(one_of("--expert-placement", {"linear", "round_robin"}))
      ->option_text("linear|round_robin")
      ->group(group);
  command.add_option("--rank", options.rank, "Only this rank's blob")
      ->transform(number_in(0, 65535))
      ->option_text("R")
      ->group(group);
}

void add_input_flags(CLI::App& command, InputOptions& options) {
  const std::string group = "Input";
  command.add_option("--style", options.style, "Naming style (list styles); default: detected")
      ->option_text("NAME")
      ->group(group);
  add_file(command, "--model-config", options.model_config,
           "config.json for an input that carries none", group);
  command.add_option("--layers", options.layers, "Only these layers: 0-3,7")
      ->option_text("LIST")
      ->group(group);
}

void add_resource_flags(CLI::App& command, RunLimits& options) {
  const std::string group = "Resources";
  command.add_option("-j,--threads", options.threads, "Workers; default: the CPUs of this process")
      ->transform(number_in(1, 1024))
      ->option_text("N")
      ->group(group);
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
      if (value.empty()) throw empty_value(name);
      return "";
    });
  }
}

}  // namespace mxfp4
