#include "apps/unknown_words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <string_view>

#include "apps/engine_words.hpp"
#include "apps/suggest.hpp"
#include "apps/text_layout.hpp"
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

struct OtherName {
  std::string_view word;  // a flag of the engine or of other programs
  std::string_view flag;  // this program's flag for the same
};

constexpr std::array kOtherNames = {
    OtherName{"--tensor-parallel-size", "--tp-size"},
    OtherName{"--tensor-parallel", "--tp-size"},
    OtherName{"--data-parallel-size", "--dp-size"},
    OtherName{"--data-parallel", "--dp-size"},
    OtherName{"--prefill-context-parallel-size", "--pcp-size"},
    OtherName{"--expert-parallel", "--enable-expert-parallel"},
    OtherName{"--ep", "--enable-expert-parallel"},
    OtherName{"--ep-size", "--enable-expert-parallel"},
    OtherName{"--eplb", "--enable-eplb"},
    OtherName{"--lora", "--enable-lora"},
    OtherName{"--enable-sp", "--sequence-parallel"},
    OtherName{"--sp", "--sequence-parallel"},
    OtherName{"--expert-placement-strategy", "--expert-placement"},
    OtherName{"--gpu", "--arch"},
    OtherName{"--gpu-arch", "--arch"},
    OtherName{"--gpu-name", "--arch"},
    OtherName{"--machine", "--arch"},
    OtherName{"--sm", "--arch"},
    OtherName{"--cc", "--arch"},
    OtherName{"--compute-capability", "--arch"},
    OtherName{"--device", "--arch"},
    OtherName{"--target-arch", "--arch"},
    OtherName{"--out", "--output"},
    OtherName{"--outdir", "--output"},
    OtherName{"--output-dir", "--output"},
    OtherName{"--dest", "--output"},
    OtherName{"--overwrite", "--force"},
    OtherName{"--yes", "--force"},
    OtherName{"--continue", "--resume"},
    OtherName{"--jobs", "--threads"},
    OtherName{"--workers", "--threads"},
    OtherName{"--num-threads", "--threads"},
    OtherName{"--nproc", "--threads"},
    OtherName{"--num-workers", "--threads"},
    OtherName{"--num-proc", "--threads"},
    OtherName{"--mem", "--memory"},
    OtherName{"--ram", "--memory"},
    OtherName{"--simulate", "--dry-run"},
    OtherName{"--just-print", "--dry-run"},
    OtherName{"--no-act", "--dry-run"},
    OtherName{"--plan", "--dry-run"},
    OtherName{"--compression", "--compress"},
    OtherName{"--zstd", "--compress"},
    OtherName{"--compression-level", "--level"},
    OtherName{"--zstd-level", "--level"},
    OtherName{"--config", "--model-config"},
    OtherName{"--vllm", "--revision"},
    OtherName{"--vllm-version", "--revision"},
    OtherName{"--engine-version", "--revision"},
    OtherName{"--release", "--revision"},
    OtherName{"--packages", "--libs"},
    OtherName{"--without", "--no-lib"},
    OtherName{"--environment", "--env"},
    OtherName{"--kernel", "--moe-backend"},
    OtherName{"--verbose", "-v"},
    OtherName{"--silent", "--quiet"},
    OtherName{"--colour", "--color"},
    OtherName{"--every", "--all"},
    OtherName{"--facts", "--target"},
};

// What other programs, or this one's name, call a command.
struct OtherCommand {
  std::string_view word;
  std::string_view command;
};

constexpr std::array kOtherCommands = {
    OtherCommand{"repack", "convert"}, OtherCommand{"pack", "convert"},
    OtherCommand{"build", "convert"},  OtherCommand{"make", "convert"},
    OtherCommand{"info", "inspect"},   OtherCommand{"show", "inspect"},
    OtherCommand{"ls", "inspect"},     OtherCommand{"check", "verify"},
    OtherCommand{"test", "verify"},    OtherCommand{"compare", "diff"},
    OtherCommand{"cmp", "diff"},       OtherCommand{"restore", "unpack"},
    OtherCommand{"extract", "unpack"}, OtherCommand{"merge", "finalize"},
    OtherCommand{"why", "explain"},    OtherCommand{"fit", "fits"},
};

bool contains(const std::vector<std::string>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// The hint for a word that is not a command.
std::string command_hint(const std::string& word, const std::vector<std::string>& commands) {
  const auto* other =
      std::ranges::find(kOtherCommands, std::string_view(word), &OtherCommand::word);
  if (other != kOtherCommands.end()) return fmt::format("did you mean {}?", other->command);
  if (word == "probe") return "mxfp4-repack-probe is a program of its own";
  return nearest_hint(word, commands);
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

// The flag that other programs call `name`, or whose name has `name` as a part; empty if there is
// none.
std::string known_otherwise(const std::string& name, const std::vector<std::string>& flags) {
  const std::string word = long_form(name);
  for (const OtherName& other : kOtherNames) {
    if (other.word == word && contains(flags, other.flag)) return std::string(other.flag);
  }
  // First by the beginning of a flag, then by a part between dashes.
  for (const std::string& flag : flags) {
    if (word.size() > 3 && (flag.starts_with(word) || word.starts_with(flag + "-"))) return flag;
  }
  const std::string part = word.substr(1) + "-";
  for (const std::string& flag : flags) {
    if (part.size() > 3 && (flag + "-").find(part) != std::string::npos) return flag;
  }
  return "";
}

// The flag that an unknown one most likely means; empty if none is near.
std::string nearest_flag(const std::string& name, const std::vector<std::string>& flags) {
  std::string other = known_otherwise(name, flags);
  if (!other.empty() || name.size() == 2) return other;
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
  const std::string nearest = nearest_flag(name, flags);
  Complaint error{fmt::format("unknown flag '{}'", name), ""};
  const std::string elsewhere = other_commands(app, name);
  constexpr std::string_view kOff = "--no-";  // the engine's form of a flag that is off
  const std::string on = name.starts_with(kOff) ? "--" + name.substr(kOff.size()) : "";
  if (&command != &app && contains(flag_names(app), name)) {
    error.hint = fmt::format("{} takes no command", name);
  } else if (&command == &app && !elsewhere.empty()) {
    error.hint = "flags follow the command; " + elsewhere;
  } else if (!elsewhere.empty()) {
    error.hint = elsewhere;
  } else if (contains(flags, on)) {
    error.hint = fmt::format("leave it out: without {} it is off", on);
  } else if (const EngineWord* word = engine_flag(long_form(name))) {
    error.hint = word->answer;
  } else if (!nearest.empty()) {
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
  const std::vector<std::string> flags = flag_names(command);
  std::string name = word.substr(0, word.find('='));
  if (name.starts_with("--")) return contains(flags, name) ? "" : name;
  // "-json" is --json with a dash too few, though the parser reads -j and its value.
  if (name.size() > 2 && contains(flags, "-" + name)) return name;
  const std::string letter = unknown_letter(command, word);
  const bool one_word = letter == name.substr(0, 2) || !known_otherwise(name, flags).empty();
  return letter.empty() || !one_word ? letter : name;
}

}  // namespace

namespace {

// The word with the dashes of a keyboard at its beginning, in place of those that a text processor
// made of them: one of U+2010 to U+2015 or U+2212 is a word's "--", or a letter's "-".
std::string with_plain_dashes(const std::string& word) {
  constexpr size_t kBytes = 3;  // of each of them in UTF-8
  size_t at = 0;
  while (word.size() >= at + kBytes) {
    const std::string_view sign = std::string_view(word).substr(at, kBytes);
    const bool dash = sign.starts_with("\xe2\x80") && sign[2] >= '\x90' && sign[2] <= '\x95';
    if (!dash && sign != "\xe2\x88\x92") break;
    at += kBytes;
  }
  if (at == 0) return word;
  const std::string rest = word.substr(std::min(word.find_first_not_of('-', at), word.size()));
  return (rest.find_first_of("= ") == 1 || rest.size() == 1 ? "-" : "--") + rest;
}

}  // namespace

std::string target_key_hint(const std::string& key) {
  std::vector<std::string> flags;
  std::vector<std::string> members;
  for (const FactRow& row : deployment_facts()) {
    if (!row.flag.empty()) flags.emplace_back(row.flag);
    if (!row.target.empty()) members.emplace_back(row.target);
  }
  const std::string flag = known_otherwise("--" + key, flags);
  for (const FactRow& row : deployment_facts()) {
    if (flag.empty() || row.flag != flag) continue;
    if (!row.target.empty()) return fmt::format("did you mean {}?", row.target);
    return fmt::format("{} says it, beside --target", flag);
  }
  const std::string near = nearest_word(key, members);
  return near.empty() ? "" : fmt::format("did you mean {}?", near);
}

Complaint unknown_word(const CLI::App& app, const std::vector<std::string>& words) {
  const std::vector<std::string> commands = command_names(app);
  const CLI::App* command = nullptr;
  for (const std::string& word : words) {
    if (word == "--") break;
    if (const std::string plain = with_plain_dashes(word); plain != word) {
      return {fmt::format("unknown flag '{}'", word),
              fmt::format("its dash is not the keyboard's: {}", plain)};
    }
    if (command == nullptr && !looks_like_flag(word)) {
      if (!contains(commands, word)) {
        const bool other = std::ranges::find(kOtherCommands, std::string_view(word),
                                             &OtherCommand::word) != kOtherCommands.end();
        const std::string nearest = nearest_word(word, commands);
        std::error_code ignored;
        if (!other && nearest.empty() && std::filesystem::exists(word, ignored)) {
          return {fmt::format("no command before '{}'", word),
                  fmt::format("mxfp4-repack inspect {} shows what it is", shell_word(word))};
        }
        if (contains(flag_names(app), "--" + word)) {
          return {fmt::format("unknown command '{}'", word),
                  fmt::format("did you mean --{}?", word)};
        }
        return {fmt::format("unknown command '{}'", word), command_hint(word, commands)};
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
