// Makes what --json prints: one document for each run, however the run ends. mxfp4-repack-json(7)
// documents its names and units.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "apps/commands.hpp"
#include "lib/core/error.hpp"

namespace mxfp4 {

using Json = nlohmann::ordered_json;

// Raised when a member changes its meaning or is removed, not for a new member.
inline constexpr int kJsonSchemaVersion = 1;

// {"schema_version": 1, "command": "convert"}: the beginning of every document. An empty command,
// of a command line that names none, becomes null.
[[nodiscard]] Json json_document(std::string_view command);

// `text`, or null if it is empty: a member that does not apply is null, not left out.
[[nodiscard]] Json text_or_null(std::string_view text);

[[nodiscard]] ExitCode exit_code_of(ErrorKind kind);

// The member `error` of a document: kind, message as on standard error, file, key, hint, the
// exception that the engine itself would raise, and the exit code.
[[nodiscard]] Json error_json(const Error& error);

// The same for something that is not an Error, such as an interruption. `hint` may be empty.
[[nodiscard]] Json error_json(std::string_view kind, std::string_view message,
                              std::string_view hint, int exit_code);

}  // namespace mxfp4
