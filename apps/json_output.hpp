// What --json prints: one document a run, whichever way the run ends. The conventions of its names
// and units are those of mxfp4-repack-json(7).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "apps/commands.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {

using Json = nlohmann::ordered_json;

// Grows when a member changes its meaning or goes; a new member leaves it as it is.
inline constexpr int kJsonSchemaVersion = 1;

// {"schema_version": 1, "command": "convert"}: what every document begins with. An empty command,
// of a line that names none, is null.
[[nodiscard]] Json json_document(std::string_view command);

// `text`, or null where it is empty: a member that does not apply stays, and is null.
[[nodiscard]] Json text_or_null(std::string_view text);

[[nodiscard]] ExitCode exit_code_of(ErrorKind kind);

// The member `error` of a document: kind, message as on standard error, file, key, hint, what the
// engine itself would raise, and the exit code.
[[nodiscard]] Json error_json(const Error& error);

// The same of what is no Error, such as an interruption. `hint` may be empty.
[[nodiscard]] Json error_json(std::string_view kind, std::string_view message,
                              std::string_view hint, int exit_code);

}  // namespace mxfp4
