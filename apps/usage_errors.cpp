#include "apps/usage_errors.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>

#include "apps/options.hpp"
#include "apps/shared_flags.hpp"
#include "apps/text_layout.hpp"
#include "apps/unknown_words.hpp"
#include "formats/blob/manifest.hpp"
#include "lib/oracle/machines.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

const CLI::App* chosen_command(const CLI::App& app, const std::vector<std::string>& words) {
  for (const CLI::App* command : app.get_subcommands({})) {
    if (std::ranges::find(words, command->get_name()) != words.end()) return command;
  }
  return nullptr;
}

bool is_switch(const CLI::Option& option) { return option.get_items_expected_max() == 0; }

// The first required option that was not given; null if all were.
const CLI::Option* missing_option(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_required() && option->count() == 0) return option;
  }
  return nullptr;
}

std::string missing_words(const CLI::App& command) {
  const CLI::Option* option = missing_option(command);
  if (option == nullptr) return "an argument is missing";
  std::string what = option->get_description();
  if (!what.empty()) what.front() = static_cast<char>(std::tolower(what.front()));
  return fmt::format("{} is missing: {}", option->get_name(), what);
}

// A flag takes any word that follows as its value, so a value can be missing only at the very end.
std::string number_of_values_words(const CLI::App& command, const std::string& last_word) {
  const bool letters = last_word.size() > 2 && !last_word.starts_with("--");
  const CLI::Option* last =
      command.get_option_no_throw(letters ? std::string{'-', last_word.back()} : last_word);
  if (last != nullptr && !last->get_positional() && !is_switch(*last)) {
    return last->get_name() + ": its value is missing";
  }
  for (const CLI::Option* option : command.get_options()) {
    if (!is_switch(*option) && option->count() > 1) {
      return option->get_name() + ": given more than once";
    }
  }
  return "a flag has too few values, or too many";
}

// Numbers are checked by number_in(), so a value that the parser cannot convert is a switch's.
std::string switch_value_words(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    if (!is_switch(*option)) continue;
    for (const std::string& value : option->results()) {
      if (value != "true" && value != "false") {
        return fmt::format(
            "{}: '{}' is neither true nor false; the flag without a value means true",
            option->get_name(), value);
      }
    }
  }
  return "a value is neither true nor false";
}

std::string contradiction_words(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    for (const CLI::Option* other : option->get_excludes()) {
      if (option->count() > 0 && other->count() > 0) {
        return fmt::format("{} and {} contradict each other: give one of them", option->get_name(),
                           other->get_name());
      }
    }
  }
  return "two flags contradict each other";
}

std::string needs_words(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    for (const CLI::Option* other : option->get_needs()) {
      if (option->count() > 0 && other->count() == 0) {
        return fmt::format("{}: has no effect without {}", option->get_name(), other->get_name());
      }
    }
  }
  return "a flag has no effect without another";
}

template <class Kind>
bool is(const CLI::Error& error) {
  return dynamic_cast<const Kind*>(&error) != nullptr;
}

// The words for which the command has no argument. The parser keeps words after "--" in `app`.
std::vector<std::string> surplus_words(const CLI::App& app, const CLI::App& command) {
  std::vector<std::string> words = command.remaining();
  if (words.empty()) words = app.remaining();
  std::erase(words, "--");
  return words;
}

std::string too_many(const std::vector<std::string>& words) {
  if (words.size() == 1) return fmt::format("'{}' is one argument too many", words.front());
  return fmt::format("{} arguments too many: '{}'", words.size(), fmt::join(words, "' '"));
}

// The parser's error in our words. The error's type says what is wrong, the parsed command with
// which flag.
std::string reworded(const CLI::App& command, const CLI::Error& error,
                     const std::vector<std::string>& words,
                     const std::vector<std::string>& surplus) {
  if (is<CLI::RequiredError>(error)) return missing_words(command);
  if (is<CLI::ArgumentMismatch>(error)) return number_of_values_words(command, words.back());
  if (is<CLI::ConversionError>(error)) return switch_value_words(command);
  if (is<CLI::ExcludesError>(error)) return contradiction_words(command);
  if (is<CLI::RequiresError>(error)) return needs_words(command);
  if (is<CLI::ExtrasError>(error)) return too_many(surplus);
  return error.what();  // ValidationError: the text comes from number_in()
}

// "blob" for files that lie in one blob: "find ... | xargs mxfp4-repack verify".
std::string blob_around(const std::vector<std::string>& words, const std::string& surplus) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path folder = fs::path(surplus).parent_path();
  if (!fs::exists(folder.empty() ? fs::path(kManifestName) : folder / kManifestName, ignored))
    return "";
  const bool all = std::ranges::any_of(words, [&](const std::string& word) {
    return word != surplus && fs::path(word).parent_path() == folder && fs::exists(word, ignored);
  });
  return !all ? "" : folder.empty() ? "." : folder.string();
}

// The flag for which a surplus word was most likely meant, as a hint; empty if none is likely.
std::string likely_meaning(const CLI::App& command, const CLI::Error& error,
                           const std::vector<std::string>& words,
                           const std::vector<std::string>& surplus) {
  const bool behind_dashes = std::ranges::find(words, "--") != words.end();
  if (behind_dashes && std::ranges::any_of(surplus, looks_like_flag))
    return "behind -- no word is a flag";
  if (!surplus.empty()) {
    if (const std::string blob = blob_around(words, surplus.front()); !blob.empty()) {
      return fmt::format("a blob is given by its directory, {}", shell_word(blob));
    }
  }
  if (surplus.size() != 1) return "";
  const std::string word = shell_word(surplus.front());
  const CLI::Option* missing = missing_option(command);
  const bool no_output =
      is<CLI::RequiredError>(error) && missing != nullptr && missing->get_name() == "--output";
  if (no_output) return fmt::format("did you mean -o {}?", word);
  if (!is<CLI::ExtrasError>(error)) return "";
  const auto takes = [&](const char* flag) { return command.get_option_no_throw(flag) != nullptr; };
  if (takes("--arch") && find_machine(surplus.front()) != nullptr) {
    return fmt::format("did you mean --arch {}?", word);
  }
  if (takes("--revision") && find_release(surplus.front()) != nullptr) {
    return fmt::format("did you mean --revision {}?", word);
  }
  if (takes("--target") && surplus.front().ends_with(".json")) {
    return fmt::format("did you mean --target {}?", word);
  }
  if (command.get_name() == "verify") return fmt::format("did you mean --against {}?", word);
  return "";
}

Complaint complaint_of(const CLI::App& app, const CLI::Error& error,
                       const std::vector<std::string>& words) {
  const std::vector<std::string> commands = command_names(app);
  const CLI::App* command = chosen_command(app, words);
  std::string help =
      command == nullptr
          ? "mxfp4-repack --help shows commands and flags"
          : fmt::format("mxfp4-repack {} --help shows examples and flags", command->get_name());
  Complaint unknown = unknown_word(app, words);
  if (!unknown.message.empty()) {
    if (unknown.hint.empty()) unknown.hint = help;
    return unknown;
  }
  if (command == nullptr)
    return {fmt::format("no command: one of {}", fmt::join(commands, ", ")), help};
  const bool takes_input = command->get_option_no_throw(kInputName) != nullptr;
  if (is<CLI::ExtrasError>(error) && takes_input) {
    help = "a checkpoint of several files is given by its directory";
  }
  const std::vector<std::string> surplus = surplus_words(app, *command);
  const std::string meant = likely_meaning(*command, error, words, surplus);
  return {reworded(*command, error, words, surplus), meant.empty() ? help : meant};
}

}  // namespace

Error usage_error(const CLI::App& app, const CLI::Error& error,
                  const std::vector<std::string>& words) {
  const Complaint complaint = complaint_of(app, error, words);
  return Error::usage(complaint.message).hint(complaint.hint);
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
