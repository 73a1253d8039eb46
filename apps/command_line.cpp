#include "apps/command_line.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <set>

#include "apps/commands.hpp"
#include "apps/embedded.hpp"
#include "apps/help_text.hpp"
#include "apps/shared_flags.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

constexpr const char* kReadBackText =
    "After fsync, read each file again past the page cache and compare";

void add_read_back_flag(CLI::App& command, ReadBack& read_back, const std::string& text) {
  command
      .add_flag_callback(
          "--read-back", [&read_back] { read_back = ReadBack::kYes; }, text)
      ->group("What is written");
}

void declare_convert(CLI::App& app, CommandLine& line) {
  ConvertOptions& options = line.convert;
  CLI::App* command =
      app.add_subcommand("convert", "Repack the expert weights of a checkpoint for one backend");
  command->footer(
      "mxfp4-repack convert gpt-oss-120b/ -o packed/ --arch sm90\n"
      "mxfp4-repack convert model/ -o packed/ --target facts.json --tp-size 8\n"
      "mxfp4-repack convert model/ -o packed/ --arch sm120 --dry-run\n"
      "mxfp4-repack convert model/ -o packed/ --arch sm90 --shard 0/4 --resume");
  command->add_option(kInputName, options.input.path, "Checkpoint: directory, file or manifest")
      ->required();
  command->add_option("-o,--output", options.output, "Directory to write")
      ->required()
      ->option_text("OUT");
  add_machine_flags(*command, options.deployment);
  add_parallel_flags(*command, options.deployment);
  add_input_flags(*command, options.input);
  const std::string group = "What is written";
  command->add_option("--compress", options.compress, "Seekable zstd or plain safetensors")
      ->check(one_of("--compress", {"zstd", "none"}))
      ->option_text("zstd|none")
      ->group(group);
  command
      ->add_option("--level", options.level,
                   "1 to 19; default 1, which is read as fast as a plain file")
      ->transform(number_in(1, 19))
      ->option_text("L")
      ->group(group);
  command
      ->add_option("--emit", options.emit,
                   "packed: for the kernel; loaded: stop after slicing and padding")
      ->check(one_of("--emit", {"packed", "loaded"}))
      ->option_text("packed|loaded")
      ->group(group);
  command
      ->add_flag("--include-rest", options.include_rest,
                 "All other tensors and small files too: OUT is a model directory")
      ->group(group);
  command->add_option("--shard", options.shard, "Only part I of N (from 0), balanced by bytes")
      ->option_text("I/N")
      ->group(group);
  command->add_flag("-n,--dry-run", options.dry_run, "Plan only")->group(group);
  command->add_flag("--resume", options.resume, "Keep what an interrupted run finished in OUT")
      ->group(group);
  command
      ->add_flag("--check", options.check,
                 "With --resume: read every byte of a complete result, not only its headers")
      ->needs(command->get_option("--resume"))
      ->group(group);
  add_read_back_flag(*command, options.read_back, kReadBackText);
  command
      ->add_flag("-f,--force", options.force,
                 "Replace an earlier result in OUT when the new one is complete")
      ->group(group);
  add_resource_flags(*command, options.resources);
  add_global_flags(*command, line.global);
  command->callback([&line] {
    line.run = [&line](const Console& console) { return run_convert(line.convert, console); };
  });
}

void declare_inspect(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand("inspect", "Show what is in a checkpoint or a blob");
  const std::string newest(newest_release().name);
  command->footer(
      "mxfp4-repack inspect gpt-oss-120b/\n"
      "mxfp4-repack inspect gpt-oss-120b/ --arch gfx950           # what it becomes\n"
      "mxfp4-repack inspect packed/ --revision " +
      newest + "  # serves there?");
  command->add_option(kInputName, line.inspect.input.path, "Checkpoint or blob, or a part of one")
      ->required();
  command->add_flag("--serve", line.inspect.serve,
                    "Of a blob, print only the engine's command that serves it");
  command->add_flag("--tensors", line.inspect.tensors, "List the tensors of all layers")
      ->group("What is shown");
  command->add_option("--layer", line.inspect.layer, "List the tensors of this layer")
      ->transform(number_in(0, 999999))
      ->option_text("N")
      ->group("What is shown");
  add_machine_flags(*command, line.inspect.deployment);
  add_parallel_flags(*command, line.inspect.deployment);
  add_input_flags(*command, line.inspect.input);
  add_global_flags(*command, line.global);
  command->callback([&line, command] {
    line.inspect.given = given_flags(*command);
    line.run = [&line](const Console& console) { return run_inspect(line.inspect, console); };
  });
}

void declare_explain(CLI::App& app, CommandLine& line) {
  ExplainOptions& options = line.explain;
  CLI::App* command = app.add_subcommand(
      "explain", "Say which backend a deployment gets, and every candidate's reason");
  command->footer(
      "mxfp4-repack explain gpt-oss-120b/ --arch sm100\n"
      "mxfp4-repack explain gpt-oss-120b/ --arch H200 -v\n"
      "mxfp4-repack explain --arch sm120 --moe-backend triton\n"
      "mxfp4-repack explain model/ --arch sm90 --against all\n"
      "mxfp4-repack explain model/ --arch sm90 --against 0.28.0");
  CLI::Option* input = command->add_option(kInputName, options.input.path,
                                           "Checkpoint; without one the flags decide");
  command
      ->add_option("--against", options.against,
                   "Show what other releases decide differently (list revisions)")
      ->option_text("NAME[,NAME]|all")
      ->group("Question");
  command->add_option("--batch", options.batch, "Answer JSON lines; - is stdin")
      ->option_text("FILE|-")
      ->group("Question");
  add_machine_flags(*command, options.deployment);
  add_parallel_flags(*command, options.deployment);
  add_input_flags(*command, options.input);
  // A config says enough to explain, so --model-config needs no INPUT.
  for (const char* name : {"--style", "--layers"}) command->get_option(name)->needs(input);
  add_global_flags(*command, line.global);
  command->callback([&line, command] {
    line.explain.given = given_flags(*command);
    line.run = [&line](const Console& console) { return run_explain(line.explain, console); };
  });
}

void declare_verify(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "verify", "Check a blob; with --against, make every byte again and compare");
  command->footer(
      "mxfp4-repack verify packed/\n"
      "mxfp4-repack verify packed/ --against gpt-oss-120b/");
  command->add_option("OUT", line.verify.blob, "Blob")->required();
  command->add_option("--against", line.verify.against.path, "The checkpoint it was made from")
      ->option_text("INPUT")
      ->group("Comparison");
  command->add_option("--style", line.verify.against.style, "Naming style of INPUT")
      ->option_text("NAME")
      ->group("Comparison");
  add_file(*command, "--model-config", line.verify.against.model_config,
           "config.json for an INPUT that carries none", "Comparison");
  for (const char* name : {"--style", "--model-config"}) {
    command->get_option(name)->needs(command->get_option("--against"));
  }
  command
      ->add_flag("--some-ranks", line.verify.some_ranks,
                 "Ranks may be missing: check those that are here")
      ->group("What has to be there");
  command
      ->add_flag_callback(
          "--direct", [&line] { line.verify.from = ReadFrom::kDevice; },
          "Read what the device holds, past the page cache")
      ->group("What has to be there");
  add_resource_flags(*command, line.verify.resources);
  add_global_flags(*command, line.global);
  command->callback([&line] {
    line.run = [&line](const Console& console) { return run_verify(line.verify, console); };
  });
}

void declare_fits(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "fits", "Say whether a blob fits a release and a machine: exit code 0, 1 or 7");
  command->footer(
      "mxfp4-repack fits packed/ --revision 0.33.0\n"
      "mxfp4-repack fits packed/ --target facts.json");
  command->add_option("OUT", line.fits.blob, "Blob")->required();
  add_fit_flags(*command, line.fits.deployment);
  add_global_flags(*command, line.global);
  command->callback([&line, command] {
    line.fits.given = given_flags(*command);
    line.run = [&line](const Console& console) { return run_fits(line.fits, console); };
  });
}

void declare_diff(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "diff", "Compare two blobs: the same layout and bytes, or what differs first");
  command->footer("mxfp4-repack diff packed/ packed-again/");
  command->add_option("A", line.diff.first, "Blob")->required();
  command->add_option("B", line.diff.second, "The other blob")->required();
  add_global_flags(*command, line.global);
  command->callback([&line] {
    line.run = [&line](const Console& console) { return run_diff(line.diff, console); };
  });
}

void declare_unpack(CLI::App& app, CommandLine& line) {
  CLI::App* command =
      app.add_subcommand("unpack", "Give back the loaded-layout tensors, padding cropped");
  command->footer(
      "mxfp4-repack unpack packed/ -o loaded/\n"
      "mxfp4-repack unpack packed/ -o experts/ --as-published");
  command->add_option("OUT", line.unpack.blob, "Blob")->required();
  command->add_option("-o,--output", line.unpack.output, "Directory to write")
      ->required()
      ->option_text("DIR");
  command
      ->add_flag("--as-published", line.unpack.as_published,
                 "The checkpoint's own names, types, shapes and shards")
      ->group("What is written");
  add_read_back_flag(*command, line.unpack.read_back, kReadBackText);
  add_resource_flags(*command, line.unpack.resources);
  add_global_flags(*command, line.global);
  command->callback([&line] {
    line.run = [&line](const Console& console) { return run_unpack(line.unpack, console); };
  });
}

void declare_finalize(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "finalize", "After convert --shard runs: check all files, write the manifest");
  command->footer("mxfp4-repack finalize packed/");
  command->add_option("OUT", line.finalize.output, "Directory that the shards wrote")->required();
  add_read_back_flag(*command, line.finalize.read_back,
                     "Check what the device holds, past the page cache; so too the manifest");
  add_resource_flags(*command, line.finalize.resources);
  add_global_flags(*command, line.global);
  command->callback([&line] {
    line.run = [&line](const Console& console) { return run_finalize(line.finalize, console); };
  });
}

void declare_list(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand("list", "Show the tables the program decides by");
  command->footer(
      "mxfp4-repack list backends\n"
      "mxfp4-repack list layouts flashinfer/trtllm\n"
      "mxfp4-repack list machines H200\n"
      "mxfp4-repack list variables --revision 0.33.0");
  command->add_option("WHAT", line.list.what, alternatives(list_tables()))
      ->required()
      ->check(one_of("list", list_tables()));
  command->add_option("NAME", line.list.name, "Only this row, in full; of layouts, a family too");
  add_engine_flag(*command, line.list.engine, "What is shown");
  command
      ->add_option("--revision", line.list.revision,
                   "Release of the engine (list revisions); default: the newest")
      ->option_text("NAME")
      ->group("What is shown");
  add_global_flags(*command, line.global);
  command->callback([&line] {
    line.run = [&line](const Console& console) { return run_list(line.list, console); };
  });
}

void declare_completion(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand("completion", "Print the completion script of a shell");
  command->footer(
      "mxfp4-repack completion bash  # source <(...) in ~/.bashrc\n"
      "mxfp4-repack completion fish  # | source");
  std::vector<std::string> shells;
  for (const CompletionScript& script : completion_scripts()) shells.emplace_back(script.shell);
  command->add_option("SHELL", line.shell, alternatives(shells))
      ->required()
      ->check(one_of("completion", shells));
  command->callback([&line] {
    line.run = [&line](const Console& console) {
      for (const CompletionScript& script : completion_scripts()) {
        if (script.shell == line.shell) console.result(script.text);
      }
      return kOk;
    };
  });
}

}  // namespace

void declare_commands(CLI::App& app, CommandLine& line) {
  app.add_flag("-V,--version", line.version,
               "The version; with -v also what it was built from and knows");
  // Every command shows these two.
  app.add_flag("-v", line.global.verbose)->group("");
  app.add_flag("--json", line.global.json)->group("");
  app.set_help_flag("-h,--help", "Examples and the usual flags");
  app.set_help_all_flag("--help-all", "Every flag");
  app.formatter_fn([](const CLI::App* shown, const std::string&, CLI::AppFormatMode mode) {
    return help_text(*shown, mode == CLI::AppFormatMode::All);
  });
  app.footer(
      "mxfp4-repack explain gpt-oss-120b/ --arch sm90            # which, and why\n"
      "mxfp4-repack convert gpt-oss-120b/ -o packed/ --arch sm90 # the main job\n"
      "mxfp4-repack verify packed/ --against gpt-oss-120b/       # every byte again");
  declare_convert(app, line);
  declare_inspect(app, line);
  declare_explain(app, line);
  declare_verify(app, line);
  declare_fits(app, line);
  declare_diff(app, line);
  declare_unpack(app, line);
  declare_finalize(app, line);
  declare_list(app, line);
  declare_completion(app, line);
  for (CLI::App* command : app.get_subcommands({})) check_values(*command);
}

}  // namespace mxfp4
