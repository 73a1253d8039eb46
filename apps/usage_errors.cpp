#include "apps/usage_errors.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "lib/core/suggest.hpp"
#include "lib/core/text.hpp"

namespace mxfp4 {
namespace {

// Whether the command has the flag in `word`: "--arch=sm90", "-o", "-j4", "-fq".
bool knows(const CLI::App& command, const std::string& word) {
  const std::string name =
      word.starts_with("--") ? word.substr(0, word.find('=')) : word.substr(0, 2);
  return command.get_option_no_throw(name) != nullptr;
}

std::vector<std::string> long_flags(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

Error unknown_flag(const CLI::App& command, const std::string& word, const std::string& help) {
  const std::string name = word.substr(0, word.find('='));
  std::string meant = name.starts_with("--") ? name : "-" + name;  // "-tp" as "--tp"
  std::ranges::replace(meant, '_', '-');
  Error error = Error::usage(fmt::format("unknown flag '{}'", name));
  if (const std::string_view answer = engine_word(meant); !answer.empty()) {
    return error.hint(std::string(answer));
  }
  return error.hint(name.size() == 2 ? help : nearest_hint(meant, long_flags(command), help));
}

}  // namespace

const CLI::App* command_in(const CLI::App& app, const std::vector<std::string>& words) {
  const auto first =
      std::ranges::find_if(words, [](const std::string& word) { return !word.starts_with('-'); });
  for (const CLI::App* command : app.get_subcommands({})) {
    if (first != words.end() && command->get_name() == *first) return command;
  }
  return nullptr;
}

Error usage_error(const CLI::App& app, const CLI::Error& error,
                  const std::vector<std::string>& words) {
  const CLI::App* command = command_in(app, words);
  const std::string help = fmt::format("mxfp4-repack {}--help shows examples and flags",
                                       command == nullptr ? "" : command->get_name() + " ");
  for (const std::string& word : words) {
    if (word == "--") break;
    if (command == nullptr && !word.starts_with('-')) {
      std::vector<std::string> names;
      for (const CLI::App* one : app.get_subcommands({})) names.push_back(one->get_name());
      return Error::usage(fmt::format("unknown command '{}'", word))
          .hint(nearest_hint(word, names));
    }
    const bool flag = word.size() > 1 && word.front() == '-' && !is_digit(word[1]);
    const CLI::App& owner = command == nullptr ? app : *command;
    if (flag && !knows(owner, word)) return unknown_flag(owner, word, help);
  }
  return Error::usage(error.what()).hint(help);
}

}  // namespace mxfp4
