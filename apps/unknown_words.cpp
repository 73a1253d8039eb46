#include "apps/unknown_words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <iterator>
#include <string_view>

#include "apps/engine_words.hpp"
#include "apps/suggest.hpp"
#include "lib/core/deployment_facts.hpp"

namespace mxfp4 {

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

bool looks_like_flag(const std::string& word) {
  return word.size() > 1 && word.front() == '-' && word != "--" &&
         std::isdigit(static_cast<unsigned char>(word[1])) == 0;
}

namespace {

bool contains(const std::vector<std::string>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

std::vector<std::string> flag_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) {
    return c == '_' ? '-' : static_cast<char>(std::tolower(c));
  });
  return out;
}

// "-tp" is looked up as "--tp".
std::string long_form(std::string_view name) {
  return (name.starts_with("--") ? "" : "-") + lower(name);
}

// The flag that an unknown one most likely means; empty if none is near.
std::string nearest_flag(const std::string& name, const std::vector<std::string>& flags) {
  if (name.size() == 2) return "";
  // Flags of one letter are near too many words.
  std::vector<std::string> words;
  std::ranges::copy_if(flags, std::back_inserter(words),
                       [](const std::string& flag) { return flag.size() > 2; });
  return nearest_word(long_form(name), words);
}

// "--arch is a flag of convert, inspect, explain"
std::string other_commands(const CLI::App& app, const std::string& flag) {
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (contains(flag_names(*command), flag)) commands.push_back(command->get_name());
  }
  return commands.empty() ? "" : fmt::format("{} is a flag of {}", flag, fmt::join(commands, ", "));
}

Complaint unknown_flag(const CLI::App& app, const CLI::App& command, const std::string& name) {
  const std::vector<std::string> flags = flag_names(command);
  Complaint error{fmt::format("unknown flag '{}'", name), ""};
  const std::string elsewhere = other_commands(app, name);
  if (&command != &app && contains(flag_names(app), name)) {
    error.hint = fmt::format("{} takes no command", name);
  } else if (&command == &app && !elsewhere.empty()) {
    error.hint = "flags follow the command; " + elsewhere;
  } else if (!elsewhere.empty()) {
    error.hint = elsewhere;
  } else if (const std::string_view answer = engine_word(long_form(name)); !answer.empty()) {
    error.hint = answer;
  } else if (const std::string nearest = nearest_flag(name, flags); !nearest.empty()) {
    error.hint = fmt::format("did you mean {}?", nearest);
  }
  return error;
}

// The first letter in a word such as "-fn" that is not a flag, with a dash; empty if all are flags.
// As in the parser, a letter that takes a value ends the letters: "-j4".
std::string unknown_letter(const CLI::App& command, std::string_view word) {
  for (char letter : word.substr(1)) {
    std::string name{'-', letter};
    const CLI::Option* option = command.get_option_no_throw(name);
    if (option == nullptr) return name;
    if (option->get_items_expected_max() > 0) break;
  }
  return "";
}

// The flag in `word` that `command` does not know; empty if it knows every flag.
std::string unknown_flag_in(const CLI::App& command, const std::string& word) {
  std::string name = word.substr(0, word.find('='));
  if (name.starts_with("--")) return contains(flag_names(command), name) ? "" : name;
  const std::string letter = unknown_letter(command, word);
  return letter == name.substr(0, 2) ? name : letter;  // "-tp" is a word
}

}  // namespace

std::string target_key_hint(const std::string& key) {
  std::vector<std::string> members;
  for (const FactRow& row : deployment_facts()) {
    if (!row.target.empty()) members.emplace_back(row.target);
  }
  const std::string near = nearest_word(key, members);
  return near.empty() ? "" : fmt::format("did you mean {}?", near);
}

Complaint unknown_word(const CLI::App& app, const std::vector<std::string>& words) {
  const std::vector<std::string> commands = command_names(app);
  const CLI::App* command = nullptr;
  for (const std::string& word : words) {
    if (word == "--") break;
    if (command == nullptr && !looks_like_flag(word)) {
      if (!contains(commands, word)) {
        return {fmt::format("unknown command '{}'", word), nearest_hint(word, commands)};
      }
      command = app.get_subcommand(word);
    } else if (looks_like_flag(word)) {
      const CLI::App& owner = command != nullptr ? *command : app;
      const std::string name = unknown_flag_in(owner, word);
      if (!name.empty()) return unknown_flag(app, owner, name);
    }
  }
  return {};
}

}  // namespace mxfp4
