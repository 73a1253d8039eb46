// `explain --fleet`: what every release of its engine means for each of one's own deployments: the
// backend that it chooses, whether the deployment's blob still fits, and what to do.
//
// The file has a line for each deployment, "NAME: [--blob OUT] FLAGS", with explain's own flags;
// blank lines and lines that begin with # do not count.
#pragma once

#include <string>
#include <vector>

#include "apps/console.hpp"
#include "apps/json_output.hpp"
#include "apps/options.hpp"
#include "lib/revisions/releases.hpp"

namespace mxfp4 {

// Consecutive releases with the same answer for one deployment, newest first.
struct FleetRow {
  std::string deployment;  // its name
  std::vector<const Release*> releases;
  std::string backend{};  // empty: none
  std::string layout{};   // empty: none
  std::string fits{};     // "yes", "no", "not known", or "" without a blob
  std::string reason{};   // why it does not fit, or why the release refuses
  std::string action{};   // "serve the blob", "convert", ...
  std::string command{};  // for the newest of the releases; empty: none
};

// Shows the table for options.fleet, in the formats that were asked for. Throws Error::input naming
// file and line for a line that is not a deployment.
int explain_fleet(const ExplainOptions& options, const Console& console);

[[nodiscard]] std::string fleet_text(const Console& console, const std::vector<FleetRow>& rows);
[[nodiscard]] Json fleet_json(const std::vector<FleetRow>& rows);
[[nodiscard]] std::string fleet_page(const std::string& title, const std::vector<FleetRow>& rows);

}  // namespace mxfp4
