// Puts changes of a deployment into words, and into flags to type.
#pragma once

#include <string>
#include <vector>

#include "apps/options.hpp"
#include "lib/oracle/needs.hpp"

namespace mxfp4 {

// "--arch sm100 (B200)", "installing the package aiter", "--env NAME=1", "without --enable-eplb"
[[nodiscard]] std::string change_words(const Change& change);
// The words of all changes, joined by " and ".
[[nodiscard]] std::string change_words(const std::vector<Change>& changes);

// "machine", "package", "variable", ...: for JSON.
[[nodiscard]] std::string_view fact_name(FactKind kind);

// The flags as they were typed, after the changes; each string is a part that stays on one line.
// `skip` names flags to leave out.
[[nodiscard]] std::vector<std::string> changed_flags(const std::vector<GivenFlag>& given,
                                                     const Asker& asker,
                                                     const std::vector<Change>& changes,
                                                     const std::set<std::string>& skip);

// The flags that make the changes. A change of a package gives --libs with the whole list.
[[nodiscard]] std::vector<std::string> flags_of(const Asker& asker,
                                                const std::vector<Change>& changes);

}  // namespace mxfp4
