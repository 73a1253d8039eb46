#include "apps/command_line.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "apps/commands.hpp"
#include "apps/embedded.hpp"
#include "apps/help_text.hpp"
#include "apps/shared_flags.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

constexpr const char* kWritten = "What is written";

// A command of which parsing chooses `run`. Its flags are declared before; `examples`: one a line.
template <class Options>
void finish(CLI::App& command, CommandLine& line, Options& options,
            int (*run)(const Options& options, const Console& console),
            const std::string& examples) {
  command.footer(examples);
  add_global_flags(command, line.global);
  command.callback([&command, &line, &options, run] {
    if constexpr (requires { options.input; }) {
      options.input.given = given_flags(command);
    } else {
      (void)command;  // the compiler asks why it is captured
    }
    line.run = [&options, run](const Console& console) { return run(options, console); };
  });
}

void declare_convert(CLI::App& app, CommandLine& line) {
  ConvertOptions& options = line.convert;
  CLI::App& command =
      *app.add_subcommand("convert", "Repack the expert weights of a checkpoint for one backend");
  command.add_option(kInputName, options.input.path, "Checkpoint: directory, file or manifest")
      ->required();
  add_value(command, "Arguments", "-o,--output", options.output,
            "Directory to write, or s3://BUCKET/PREFIX", "OUT")
      ->required();
  add_request_flags(command, options.input);
  add_value(command, kWritten, "--compress", options.compress, "Seekable zstd or plain safetensors",
            "zstd|none")
      ->check(one_of("--compress", {"zstd", "none"}));
  add_value(command, kWritten, "--level", options.level,
            "1 to 19; default 1, which is read as fast as a plain file", "L")
      ->transform(number_in(1, 19));
  add_value(command, kWritten, "--emit", options.emit,
            "packed: for the kernel; loaded: stop after slicing and padding", "packed|loaded")
      ->check(one_of("--emit", {"packed", "loaded"}));
  add_switch(command, kWritten, "--include-rest", options.include_rest,
             "All other tensors and small files too: OUT is a model directory");
  add_value(command, kWritten, "--shard", options.shard,
            "Only part I of N (from 0), balanced by bytes", "I/N");
  add_switch(command, kWritten, "-n,--dry-run", options.dry_run, "Plan only");
  CLI::Option* resume = add_switch(command, kWritten, "--resume", options.resume,
                                   "Keep what an interrupted run finished in OUT");
  add_switch(command, kWritten, "--check", options.check,
             "With --resume: read every byte of a complete result, not only its headers")
      ->needs(resume);
  add_switch(command, kWritten, "-f,--force", options.force,
             "Replace an earlier result in OUT when the new one is complete");
  add_resource_flags(command, options.resources);
  finish(command, line, options, run_convert,
         "mxfp4-repack convert gpt-oss-120b/ -o packed/ --arch sm90\n"
         "mxfp4-repack convert model/ -o packed/ --target facts.json --tp-size 8\n"
         "mxfp4-repack convert model/ -o packed/ --arch sm120 --dry-run\n"
         "mxfp4-repack convert model/ -o packed/ --arch sm90 --shard 0/4 --resume");
}

void declare_inspect(CLI::App& app, CommandLine& line) {
  InspectOptions& options = line.inspect;
  CLI::App& command = *app.add_subcommand("inspect", "Show what is in a checkpoint or a blob");
  command.add_option(kInputName, options.input.path, "Checkpoint or blob, or a part of one")
      ->required();
  const std::string shown = "What is shown";
  add_switch(command, shown, "--serve", options.serve,
             "Of a blob, print only the engine's command that serves it");
  add_switch(command, shown, "--tensors", options.tensors, "List the tensors of all layers");
  add_value(command, shown, "--layer", options.layer, "List the tensors of this layer", "N")
      ->transform(number_in(0, 999999));
  add_request_flags(command, options.input);
  finish(command, line, options, run_inspect,
         "mxfp4-repack inspect gpt-oss-120b/\n"
         "mxfp4-repack inspect gpt-oss-120b/ --arch gfx950           # what it becomes\n"
         "mxfp4-repack inspect packed/ --revision " +
             std::string(newest_release().name) + "  # serves there?");
}

void declare_explain(CLI::App& app, CommandLine& line) {
  ExplainOptions& options = line.explain;
  CLI::App& command = *app.add_subcommand(
      "explain", "Say which backend a deployment gets, and every candidate's reason");
  CLI::Option* input = command.add_option(kInputName, options.input.path,
                                          "Checkpoint; without one the flags decide");
  add_value(command, "Question", "--against", options.against,
            "Show what other releases decide differently (list revisions)", "NAME[,NAME]|all");
  add_value(command, "Question", "--batch", options.batch, "Answer JSON lines; - is stdin",
            "FILE|-");
  CLI::Option* nodes = add_value(command, "Question", "--nodes,--nnodes", options.nodes,
                                 "Show the bytes that one of N nodes reads, in three ways", "N");
  add_request_flags(command, options.input);
  nodes->transform(number_in(1, 65536))->needs(input)->excludes("--rank", "--layers", "--against");
  // A config says enough to explain, so --model-config needs no INPUT.
  for (const char* name : {"--style", "--layers"}) command.get_option(name)->needs(input);
  finish(command, line, options, run_explain,
         "mxfp4-repack explain gpt-oss-120b/ --arch sm100\n"
         "mxfp4-repack explain gpt-oss-120b/ --arch H200 -v\n"
         "mxfp4-repack explain --arch sm120 --moe-backend triton\n"
         "mxfp4-repack explain model/ --arch sm90 --against all\n"
         "mxfp4-repack explain model/ --arch sm90 --against 0.28.0");
}

void declare_verify(CLI::App& app, CommandLine& line) {
  VerifyOptions& options = line.verify;
  CLI::App& command = *app.add_subcommand(
      "verify", "Check a blob; with --against, make every byte again and compare");
  command.add_option("OUT", options.blob, "Blob")->required();
  const std::string comparison = "Comparison";
  CLI::Option* against = add_value(command, comparison, "--against", options.against.path,
                                   "The checkpoint it was made from", "INPUT");
  add_style_flag(command, options.against, comparison)->needs(against);
  add_model_config(command, options.against.model_config, comparison)->needs(against);
  const std::string there = "What has to be there";
  add_switch(command, there, "--some-ranks", options.some_ranks,
             "Ranks may be missing: check those that are here");
  command
      .add_flag_callback(
          "--direct", [&options] { options.from = ReadFrom::kDevice; },
          "Read what the device holds, past the page cache")
      ->group(there);
  add_resource_flags(command, options.resources);
  finish(command, line, options, run_verify,
         "mxfp4-repack verify packed/\n"
         "mxfp4-repack verify packed/ --against gpt-oss-120b/");
}

void declare_fits(CLI::App& app, CommandLine& line) {
  CLI::App& command = *app.add_subcommand(
      "fits", "Say whether a blob fits a release and a machine: exit code 0, 1 or 7");
  command.add_option("OUT", line.fits.input.path, "Blob")->required();
  add_fit_flags(command, line.fits.input);
  finish(command, line, line.fits, run_fits,
         "mxfp4-repack fits packed/ --revision 0.33.0\n"
         "mxfp4-repack fits packed/ --target facts.json");
}

void declare_diff(CLI::App& app, CommandLine& line) {
  CLI::App& command = *app.add_subcommand(
      "diff", "Compare two blobs: the same layout and bytes, or what differs first");
  command.add_option("A", line.diff.first, "Blob")->required();
  command.add_option("B", line.diff.second, "The other blob")->required();
  finish(command, line, line.diff, run_diff, "mxfp4-repack diff packed/ packed-again/");
}

void declare_unpack(CLI::App& app, CommandLine& line) {
  UnpackOptions& options = line.unpack;
  CLI::App& command =
      *app.add_subcommand("unpack", "Give back the loaded-layout tensors, padding cropped");
  command.add_option("OUT", options.blob, "Blob")->required();
  add_value(command, "Arguments", "-o,--output", options.output, "Directory to write", "DIR")
      ->required();
  add_switch(command, kWritten, "--as-published", options.as_published,
             "The checkpoint's own names, types, shapes and shards");
  add_resource_flags(command, options.resources);
  finish(command, line, options, run_unpack,
         "mxfp4-repack unpack packed/ -o loaded/\n"
         "mxfp4-repack unpack packed/ -o experts/ --as-published");
}

void declare_finalize(CLI::App& app, CommandLine& line) {
  FinalizeOptions& options = line.finalize;
  CLI::App& command = *app.add_subcommand(
      "finalize", "After convert --shard runs: check all files, write the manifest");
  command.add_option("OUT", options.output, "Directory that the shards wrote")->required();
  add_resource_flags(command, options.resources);
  finish(command, line, options, run_finalize, "mxfp4-repack finalize packed/");
}

void declare_list(CLI::App& app, CommandLine& line) {
  ListOptions& options = line.list;
  CLI::App& command = *app.add_subcommand("list", "Show the tables the program decides by");
  command.add_option("WHAT", options.what, alternatives(list_tables()))
      ->required()
      ->check(one_of("list", list_tables()));
  command.add_option("NAME", options.name, "Only this row, in full; of layouts, a family too");
  add_value(command, "What is shown", "--engine", options.engine, "Engine that serves",
            "vllm|sglang")
      ->check(one_of("--engine", {"vllm", "sglang"}));
  add_value(command, "What is shown", "--revision", options.revision,
            "Release of the engine (list revisions); default: the newest", "NAME");
  finish(command, line, options, run_list,
         "mxfp4-repack list backends\n"
         "mxfp4-repack list layouts flashinfer/trtllm\n"
         "mxfp4-repack list machines H200\n"
         "mxfp4-repack list variables --revision 0.33.0");
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
