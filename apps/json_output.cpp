#include "apps/json_output.hpp"

#include <algorithm>
#include <array>

namespace mxfp4 {
namespace {

struct KindRow {
  ErrorKind kind;
  std::string_view name;
  ExitCode code;
};
constexpr std::array kKinds = {KindRow{ErrorKind::kUsage, "usage", kUsage},
                               KindRow{ErrorKind::kInput, "input", kInput},
                               KindRow{ErrorKind::kUnsupported, "unsupported", kUnsupported},
                               KindRow{ErrorKind::kOutput, "output", kOutput},
                               KindRow{ErrorKind::kInternal, "internal", kInternal}};

const KindRow& kind_row(ErrorKind kind) { return *std::ranges::find(kKinds, kind, &KindRow::kind); }

// The flag that the words of a usage error quote, as in "unknown flag '--bogus'"; empty if there
// is none.
std::string quoted_flag(const std::string& words) {
  const size_t begin = words.find("'-");
  const size_t end = begin == std::string::npos ? begin : words.find('\'', begin + 1);
  return end == std::string::npos ? "" : words.substr(begin + 1, end - begin - 1);
}

}  // namespace

Json json_document(std::string_view command) {
  return {{"schema_version", kJsonSchemaVersion}, {"command", text_or_null(command)}};
}

Json text_or_null(std::string_view text) { return text.empty() ? Json() : Json(text); }

ExitCode exit_code_of(ErrorKind kind) { return kind_row(kind).code; }

Json error_json(const Error& error) {
  Json json = error_json(kind_row(error.kind()).name, error.what(), error.hint_text(),
                         exit_code_of(error.kind()));
  json["file"] = text_or_null(error.file());
  json["key"] = text_or_null(error.key().empty() ? quoted_flag(error.message()) : error.key());
  json["engine_error"] = text_or_null(error.reference_type_name());
  return json;
}

Json error_json(std::string_view kind, std::string_view message, std::string_view hint,
                int exit_code) {
  return {{"kind", kind},          {"message", message},         {"file", Json()},
          {"key", Json()},         {"hint", text_or_null(hint)}, {"engine_error", Json()},
          {"exit_code", exit_code}};
}

}  // namespace mxfp4
