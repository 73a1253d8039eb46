// Finds the first word of a command line that is neither a command nor a flag, and what was most
// likely meant.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace mxfp4 {

struct Complaint {
  std::string message;  // empty: nothing is wrong
  std::string hint;
};

// Complains of the first of `words` that `app` does not know; the message is empty if it knows all
// of them. The hint is the nearest command or flag, or what engine_words.hpp says.
[[nodiscard]] Complaint unknown_word(const CLI::App& app, const std::vector<std::string>& words);

// The hint for a member that --target files do not have: the nearest one; empty if none is
// near.
[[nodiscard]] std::string target_key_hint(const std::string& key);

// The names of the commands of `app`.
[[nodiscard]] std::vector<std::string> command_names(const CLI::App& app);

// Whether `word` begins with a dash that is followed by no digit.
[[nodiscard]] bool looks_like_flag(const std::string& word);

}  // namespace mxfp4
