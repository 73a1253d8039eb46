#include "apps/explain/explain_fleet.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "apps/command_line.hpp"
#include "apps/commands.hpp"
#include "apps/explain/explain_side.hpp"
#include "apps/html_page.hpp"
#include "apps/request.hpp"
#include "apps/text_layout.hpp"
#include "apps/usage_errors.hpp"
#include "formats/decision/fits.hpp"
#include "formats/decision/given_path.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"
#include "lib/layouts/output.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxFleetBytes = int64_t{1} << 20;

// What to do about a release that refuses a deployment which another one serves.
constexpr std::string_view kStay = "stay with another release";

// A line of the file.
struct FleetLine {
  std::string name;
  std::vector<std::string> words;  // explain's, without --blob
  fs::path blob;                   // empty: none
};

// The words of a line: blanks part them, quotes keep blanks, a backslash keeps the next character.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::optional<std::string> word;
  char quote = '\0';
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool blank = c == ' ' || c == '\t' || c == '\r';
    if (quote == '\0' && blank) {
      if (word) words.push_back(*std::exchange(word, std::nullopt));
      continue;
    }
    if (!word) word.emplace();
    if (c == quote) {
      quote = '\0';
    } else if (quote == '\0' && (c == '"' || c == '\'')) {
      quote = c;
    } else if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      *word += text[++i];
    } else {
      *word += c;
    }
  }
  if (quote != '\0') throw Error::input(fmt::format("the quote {} is not closed", quote));
  if (word) words.push_back(*word);
  return words;
}

// Takes "--blob OUT" or "--blob=OUT" out of the words.
fs::path take_blob(std::vector<std::string>& words) {
  constexpr std::string_view kFlag = "--blob";
  std::optional<fs::path> blob;
  for (auto at = words.begin(); at != words.end();) {
    const bool joined = at->starts_with("--blob=");
    if (!joined && *at != kFlag) {
      ++at;
      continue;
    }
    if (blob) throw Error::input("--blob: given twice");
    if (!joined && std::next(at) == words.end()) {
      throw Error::input("--blob: needs the directory of a blob");
    }
    blob = joined ? at->substr(kFlag.size() + 1) : *std::next(at);
    at = words.erase(at, at + (joined ? 1 : 2));
  }
  return blob.value_or(fs::path());
}

// Whether the words say how to print: that is the same for all lines.
bool says_how_to_print(const GlobalOptions& options) {
  return options.json || options.quiet || options.verbose > 0 || !options.color.empty() ||
         options.progress != GlobalOptions().progress;
}

std::optional<FleetLine> parse_line(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos || text[begin] == '#') return std::nullopt;
  text.remove_prefix(begin);
  if (text.front() == '{' || text.front() == '[') {
    throw Error::input("JSON, expected NAME: FLAGS")
        .hint("a target's file is a flag of a line: \"prod: --target FILE\"");
  }
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0) {
    throw Error::input("expected NAME: FLAGS, such as \"prod: --arch H100 --tp-size 2\"");
  }
  FleetLine line;
  line.name = text.substr(0, text.find_last_not_of(" \t", colon - 1) + 1);
  line.words = words_of(text.substr(colon + 1));
  line.blob = take_blob(line.words);
  return line;
}

// explain's options for the words of a line, with the file's own INPUT where the line has none.
ExplainOptions options_of(const FleetLine& line, const ExplainOptions& shared) {
  CLI::App app;
  CommandLine parsed;
  declare_commands(app, parsed);
  std::vector<std::string> words = line.words;
  words.insert(words.begin(), "explain");
  refuse_empty_values(words);
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::Success&) {
    throw Error::usage("--help and --version have no effect here");
  } catch (const CLI::ParseError& error) {
    throw usage_error(app, error, words);
  }
  ExplainOptions options = parsed.explain;
  const bool asks_more = !options.against.empty() || options.all || options.history ||
                         !options.batch.empty() || !options.fleet.empty() || !options.html.empty();
  if (asks_more || says_how_to_print(parsed.global) || !options.deployment.revision.empty()) {
    throw Error::usage(
        "a line has the flags of a deployment: every release of its engine is asked for it");
  }
  if (options.input.path.empty() && options.input.model_config.empty()) {
    options.input = shared.input;
  }
  options.history = true;  // neither candidates nor the command to type are shown
  return options;
}

// Why nothing can be converted, or asked; nullopt where something can.
const std::optional<Error>& fault_of(const Side& side) {
  return side.error ? side.error : side.explanation.refusal;
}

// The engine's refusal without the lists behind its sentence: keys, candidates and their reasons.
std::string sentence_of(const std::string& message) {
  return message.substr(
      0, std::min(message.find(" weight_key="), message.find(" Candidate backends were")));
}

// The plug-in of vLLM proves a blob of which no rule says whether it fits. SGLang's leaves some
// paths to SGLang.
std::string_view fit_action(Engine engine, Fit fit) {
  if (fit == Fit::kNo) return "convert again";
  if (engine != Engine::kVllm) return fit == Fit::kYes ? "keep the blob" : "not known: compare";
  return fit == Fit::kYes ? "serve the blob" : "start once: the plug-in proves it";
}

// What a release means for one deployment.
FleetRow row_of(const FleetLine& line, const ExplainOptions& options, const Release& release,
                const std::optional<BlobRanks>& blob, const Side& side) {
  FleetRow row{.deployment = line.name, .releases = {&release}};
  const Explanation& e = side.explanation;
  if (!side.error && e.decision.backend) row.backend = backend_name(*e.decision.backend);
  const std::optional<Error>& refused = fault_of(side);
  const std::string input =
      options.input.path.empty() ? "INPUT" : shell_word(options.input.path.string());
  std::vector<std::string> flags;
  for (const std::string& word : line.words) {
    if (word != options.input.path.string()) flags.push_back(shell_word(word));
  }
  if (refused) {
    row.reason = sentence_of(refused->message());
    row.action = kStay;
    return row;
  }
  if (e.layout != nullptr) row.layout = id_of(*e.layout);
  const std::string convert = fmt::format("mxfp4-repack convert {} -o NEW {} --revision {}", input,
                                          fmt::join(flags, " "), release.name);
  row.action = "convert";
  if (blob) {
    const FitQuestion question{.rules = &rules_of(release),
                               .release = std::string(release.name),
                               .facts = deployment_from(options.deployment, rules_of(release))};
    const Fits answer = fits(question, *blob);
    row.fits = answer.fit == Fit::kYes ? "yes" : answer.fit == Fit::kNo ? "no" : "not known";
    if (!answer.reasons.empty()) row.reason = answer.reasons.front();
    row.action = fit_action(release.engine, answer.fit);
  }
  if (!blob || row.fits == "no") row.command = convert;
  return row;
}

// Whether two releases say the same, and take each other's blobs if they make some.
bool same_answer(const FleetRow& one, const FleetRow& other, const Side& here, const Side& there) {
  if (here.answer().decided() && !share_blobs(here.answer(), there.answer())) return false;
  return one.deployment == other.deployment && one.backend == other.backend &&
         one.layout == other.layout && one.fits == other.fits && one.reason == other.reason &&
         one.action == other.action;
}

// The rows of one deployment, newest release first.
void add_deployment(const FleetLine& line, const ExplainOptions& shared,
                    std::vector<FleetRow>& rows) {
  const ExplainOptions options = options_of(line, shared);
  std::optional<BlobRanks> blob;
  if (!line.blob.empty()) blob = open_blob_ranks(line.blob);
  ExplainCall call{options};
  const std::span<const Release* const> releases =
      releases_of(rules_for(options.deployment).engine);
  const size_t first = rows.size();
  std::unique_ptr<const Side> before;
  for (auto at = releases.rbegin(); at != releases.rend(); ++at) {
    if ((*at)->version.empty()) continue;  // commits between releases
    auto side = std::make_unique<const Side>(explain_side(rules_of(**at), call));
    FleetRow row = row_of(line, options, **at, blob, *side);
    if (before && same_answer(rows.back(), row, *before, *side)) {
      rows.back().releases.push_back(*at);
    } else {
      rows.push_back(std::move(row));
    }
    before = std::move(side);
  }
  // What every release says in the same words is a fault of the line, unless it is the
  // engine's refusal.
  const std::optional<Error>& refused = fault_of(*before);
  if (rows.size() == first + 1 && refused && refused->kind() != ErrorKind::kUnsupported) {
    throw Error(*refused);
  }
  const auto own = std::span(rows).subspan(first);
  if (std::ranges::any_of(own, [](const FleetRow& row) { return row.action != kStay; })) return;
  for (FleetRow& row : own) row.action = "change the deployment";
}

std::vector<FleetRow> read_fleet(const ExplainOptions& options) {
  const std::string file = options.fleet.string();
  const std::string text =
      in_file(file, [&] { return read_text_stream(options.fleet, kMaxFleetBytes); });
  std::vector<FleetRow> rows;
  std::map<std::string, size_t> lines;  // by name: the deployment's line
  size_t number = 0;
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // of Windows' editors
  for (size_t begin = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
       begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    ++number;
    try {
      if (const auto line = parse_line(std::string_view(text).substr(begin, end - begin))) {
        const auto [same, is_new] = lines.emplace(line->name, number);
        if (!is_new) {
          throw Error::input(fmt::format("line {} has this name, too", same->second))
              .at_key(shown(line->name));
        }
        add_deployment(*line, options, rows);
      }
    } catch (Error& error) {
      error.add_context(fmt::format("line {}", number)).in_file(file);
      throw;
    }
    begin = end + 1;
  }
  if (!rows.empty()) return rows;
  throw Error::input("no deployment: expected lines NAME: FLAGS").in_file(file);
}

// "0.30.0 to 0.33.0", "SGLang 0.5.23"
std::string releases_text(const FleetRow& row) {
  const Release& newest = *row.releases.front();
  std::string text;
  if (newest.engine != Engine::kVllm) text = fmt::format("{} ", engine_title(newest.engine));
  if (row.releases.size() > 1) text += fmt::format("{} to ", row.releases.back()->version);
  return text + std::string(newest.version);
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

}  // namespace

std::string fleet_text(const Console& console, const std::vector<FleetRow>& rows) {
  std::vector<std::vector<std::string>> lines = {
      {"deployment", "releases", "backend", "fits", "what to do"}};
  std::string before;
  std::string said;
  for (const FleetRow& row : rows) {
    // Rows may differ in nothing but the layout.
    std::string more = row.reason;
    if (!row.command.empty()) {
      more += fmt::format("{}layout {}", more.empty() ? "" : "; ", row.layout);
    }
    std::string action = more.empty() ? row.action : fmt::format("{}: {}", row.action, more);
    // Releases that answer alike stay apart if none of them takes the others' blobs.
    const bool same = row.deployment == before && row.backend == lines.back()[2] && action == said;
    said = action;
    if (same) action += "; the blob of the row above does not serve here";
    lines.push_back({row.deployment == before ? "" : row.deployment, releases_text(row),
                     or_dash(row.backend), or_dash(row.fits), action});
    before = row.deployment;
  }
  return console.table(lines);
}

Json fleet_json(const std::vector<FleetRow>& rows) {
  Json out = json_document("explain");
  Json& fleet = out["fleet"] = Json::array();
  for (const FleetRow& row : rows) {
    Json& item = fleet.emplace_back();
    item["deployment"] = row.deployment;
    Json& revisions = item["revisions"] = Json::array();
    for (const Release* release : row.releases) revisions.push_back(release->name);
    item["backend"] = text_or_null(row.backend);
    item["layout"] = text_or_null(row.layout);
    item["fits"] = row.fits == "yes" ? Json(true) : row.fits == "no" ? Json(false) : Json();
    item["action"] = row.action;
    item["reason"] = text_or_null(row.reason);
    item["next"] = text_or_null(row.command);
  }
  return out;
}

std::string fleet_page(const std::string& title, const std::vector<FleetRow>& rows) {
  HtmlTable page_table(
      {{"deployment"}, {"releases"}, {"backend"}, {"layout"}, {"blob fits"}, {"what to do"}});
  std::string before;
  for (const FleetRow& row : rows) {
    std::string action = html_escaped(row.action);
    if (!row.reason.empty()) action += fmt::format(": {}", html_escaped(row.reason));
    if (!row.command.empty()) action += fmt::format("<br>{}", html_code(row.command));
    const std::string name = html_escaped(row.deployment);
    page_table.add({{row.deployment == before ? html_again(row.deployment) : name},
                    {releases_text(row)},
                    {html_code(or_dash(row.backend))},
                    {html_code(or_dash(row.layout))},
                    {or_dash(row.fits), row.fits == "yes"  ? "yes"
                                        : row.fits == "no" ? "warn"
                                                           : "no"},
                    {action}});
    before = row.deployment;
  }
  return html_page(title, page_table.html());
}

int explain_fleet(const ExplainOptions& options, const Console& console) {
  const std::vector<FleetRow> rows = read_fleet(options);
  if (!options.html.empty()) {
    write_html_page(options.html,
                    fleet_page(fmt::format("{}: every release", options.fleet.string()), rows));
    console.note(fmt::format("{}: page about the fleet", shell_word(options.html.string())));
  }
  if (console.json()) {
    console.result_json(fleet_json(rows));
  } else {
    console.result(fleet_text(console, rows));
  }
  return kOk;
}

}  // namespace mxfp4
