#include "apps/change_words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "apps/text_layout.hpp"
#include "lib/core/deployment_facts.hpp"
#include "lib/core/error.hpp"
#include "lib/oracle/machines.hpp"

namespace mxfp4 {
namespace {

// The row of the fact that a change is about.
const FactRow& words_of(FactKind kind) {
  const FactRow* row = find_fact(kind);
  if (row == nullptr) throw Error::internal("a change of a fact without a name");
  return *row;
}

std::string value_words(const Change& change) {
  const std::string value = change.value.value_or("");
  if (change.kind == FactKind::kVariable) return fmt::format("{}={}", change.name, value);
  if (change.kind == FactKind::kActivationKey) {
    return fmt::format("'{{\"moe\":{{\"activation\":\"{}\"}}}}'", value);
  }
  return shell_word(value);
}

std::string flag_text(const Change& change) {
  const FactRow& words = words_of(change.kind);
  if (change.kind == FactKind::kMachine && !change.value) return "--platform xpu";
  if (words.is_switch()) return std::string(words.flag);
  return fmt::format("{} {}", words.flag, value_words(change));
}

// The first names of the machines with this architecture: "B200, GB200".
std::string machine_names(const std::string& arch) {
  const Machine* machine = find_machine(arch);
  if (machine == nullptr) return "";
  constexpr size_t kMost = 2;
  const size_t count = std::min(kMost, machine->names.size());
  return fmt::format("{}", fmt::join(machine->names.begin(),
                                     machine->names.begin() + static_cast<ptrdiff_t>(count), ", "));
}

bool changes_flag(const Change& change, const GivenFlag& flag, const std::string& value) {
  if (flag.name == "--no-lib") return change.kind == FactKind::kPackage;
  if (flag.name == "--platform") return change.kind == FactKind::kMachine;
  if (flag.name != words_of(change.kind).flag) return false;
  if (change.kind != FactKind::kVariable) return true;
  return value.starts_with(change.name + "=");
}

}  // namespace

std::string change_words(const Change& change) {
  const FactRow& words = words_of(change.kind);
  if (change.kind == FactKind::kPackage) {
    return fmt::format("{} the package {}", change.value ? "installing" : "removing", change.name);
  }
  if (change.kind == FactKind::kMachine && change.value) {
    const std::string names = machine_names(*change.value);
    return names.empty() ? flag_text(change) : fmt::format("{} ({})", flag_text(change), names);
  }
  if (change.kind == FactKind::kMachine) return flag_text(change);
  if (!change.value) {
    return change.kind == FactKind::kVariable ? fmt::format("without --env {}", change.name)
                                              : fmt::format("without {}", words.flag);
  }
  const bool model = change.kind == FactKind::kActivation || change.kind == FactKind::kRouting;
  return model ? fmt::format("another model: {}", flag_text(change)) : flag_text(change);
}

std::string change_words(const std::vector<Change>& changes) {
  std::vector<std::string> words;
  words.reserve(changes.size());
  for (const Change& change : changes) words.push_back(change_words(change));
  return fmt::format("{}", fmt::join(words, " and "));
}

std::string_view fact_name(FactKind kind) { return words_of(kind).name; }

std::vector<std::string> flags_of(const Asker& asker, const std::vector<Change>& changes) {
  std::vector<std::string> flags;
  bool packages = false;
  for (const Change& change : changes) {
    if (change.kind == FactKind::kPackage) {
      packages = true;
    } else if (change.value || change.kind == FactKind::kMachine) {
      flags.push_back(flag_text(change));
    }
  }
  if (packages) {
    const auto libs = with_changes(asker, changes).libs.value_or(std::set<std::string>());
    flags.push_back(
        fmt::format("--libs {}", libs.empty() ? kNoLibs : fmt::format("{}", fmt::join(libs, ","))));
  }
  return flags;
}

std::vector<std::string> changed_flags(const std::vector<GivenFlag>& given, const Asker& asker,
                                       const std::vector<Change>& changes,
                                       const std::set<std::string>& skip) {
  std::vector<std::string> parts;
  for (const GivenFlag& flag : given) {
    if (skip.contains(flag.name)) continue;
    const auto dropped = [&](const std::string& value) {
      return std::ranges::any_of(
          changes, [&](const Change& change) { return changes_flag(change, flag, value); });
    };
    if (flag.values.empty() && !dropped("")) parts.push_back(flag.name);
    for (const std::string& value : flag.values) {
      if (!dropped(value)) parts.push_back(fmt::format("{} {}", flag.name, shell_word(value)));
    }
  }
  const std::vector<std::string> added = flags_of(asker, changes);
  parts.insert(parts.end(), added.begin(), added.end());
  return parts;
}

}  // namespace mxfp4
