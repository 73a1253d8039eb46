#include "apps/usage_errors.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "apps/options.hpp"
#include "apps/shared_flags.hpp"
#include "apps/unknown_words.hpp"

namespace mxfp4 {
namespace {

const CLI::App* chosen_command(const CLI::App& app, const std::vector<std::string>& words) {
  for (const CLI::App* command : app.get_subcommands({})) {
    if (std::ranges::find(words, command->get_name()) != words.end()) return command;
  }
  return nullptr;
}

}  // namespace

Error usage_error(const CLI::App& app, const CLI::Error& error,
                  const std::vector<std::string>& words) {
  const CLI::App* command = chosen_command(app, words);
  const std::string help =
      command == nullptr
          ? "mxfp4-repack --help shows commands and flags"
          : fmt::format("mxfp4-repack {} --help shows examples and flags", command->get_name());
  const Complaint unknown = unknown_word(app, words);
  if (unknown.message.empty()) return Error::usage(error.what()).hint(help);
  return Error::usage(unknown.message).hint(unknown.hint.empty() ? help : unknown.hint);
}

std::vector<std::string> with_help_flag(const CLI::App& app, std::vector<std::string> words) {
  if (words.empty()) return words;
  if (words.front() == "help") {
    words.erase(words.begin());
    if (!words.empty() && words.front() == "help") words.erase(words.begin());
    const std::vector<std::string> commands = command_names(app);
    if (words.empty() || std::ranges::find(commands, words.front()) != commands.end())
      words.emplace_back("--help");
  }
  // A command line that asks for help is not looked at otherwise: "convert --help --arch".
  const auto command =
      std::ranges::find_if(words, [&](const std::string& word) { return !looks_like_flag(word); });
  for (const char* help : {"--help", "-h"}) {
    const auto end = std::ranges::find(words, "--");
    if (std::find(words.begin(), end, help) == end) continue;
    const std::vector<std::string> commands = command_names(app);
    if (command == words.end()) return {help};
    if (std::ranges::find(commands, *command) != commands.end()) return {*command, help};
  }
  return words;
}

void refuse_empty_values(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "--") return;
    if (word.starts_with("--") && word.find('=') == word.size() - 1) {
      throw empty_value(word.substr(0, word.size() - 1));
    }
  }
}

}  // namespace mxfp4
