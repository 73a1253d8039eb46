#include "formats/decision/compare_revisions.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>

namespace mxfp4 {
namespace {

template <class Value>
bool same(const RevisionAnswer& here, const RevisionAnswer& there, const Value& value) {
  return value(here) == value(there);
}

std::string_view caller_of(const RevisionAnswer& a) {
  return a.conversion.caller == nullptr ? std::string_view() : a.conversion.caller->method;
}

// The backend, or the reason why there is none.
auto outcome_of(const RevisionAnswer& a) {
  std::optional<Backend> backend;
  std::string reason;
  if (a.error) {
    reason = a.error->what();
  } else if (!a.conversion.decision.backend) {
    reason = a.conversion.decision.error_type + ": " + a.conversion.decision.error_message;
  } else if (a.conversion.refusal) {
    reason = a.conversion.refusal->what();
  } else {
    backend = a.conversion.decision.backend;
  }
  return std::tuple(backend, reason);
}

// Rank 0's experts and sizes, before and after rounding, and what pads scales where something does;
// without a checkpoint, the multiples to which sizes are rounded.
std::vector<int64_t> sizes_of(const RevisionAnswer& a) {
  if (!a.decided()) return {};
  const Conversion& c = a.conversion;
  if (c.ranks.empty()) {
    const LayerDims multiples = rounding_multiples(a.rules, c.caller, c.target);
    return {multiples.hidden_size, multiples.intermediate_size};
  }
  const RankSlice& rank = c.ranks.front();
  std::vector<int64_t> sizes{std::ssize(rank.experts), c.model.hidden_size, rank.padded.hidden_size,
                             c.model.intermediate_size / rank.tp_size,
                             rank.padded.intermediate_size};
  if (rank.padded.hidden_size != sizes[1] || rank.padded.intermediate_size != sizes[3]) {
    sizes.push_back(std::to_integer<int64_t>(c.fill.hidden));
    sizes.push_back(std::to_integer<int64_t>(c.fill.intermediate));
  }
  return sizes;
}

const Layout* layout_of(const RevisionAnswer& a) {
  const LayoutRow* row = a.decided() ? a.conversion.row : nullptr;
  return row == nullptr ? nullptr : row->layout;
}

std::vector<std::string> notes_of(const RevisionAnswer& a) {
  if (!a.decided()) return {};
  std::vector<std::string> notes = a.conversion.decision.notes;
  notes.insert(notes.end(), a.conversion.defects.begin(), a.conversion.defects.end());
  return notes;
}

bool equal(RevisionFact fact, const RevisionAnswer& here, const RevisionAnswer& there) {
  switch (fact) {
    case RevisionFact::kCaller:
      return same(here, there, caller_of);
    case RevisionFact::kConverter:
      return here.conversion.family == there.conversion.family;
    case RevisionFact::kPackages:
      return here.conversion.deployment.libs == there.conversion.deployment.libs;
    case RevisionFact::kRouting:
      return here.conversion.deployment.routing_method ==
             there.conversion.deployment.routing_method;
    case RevisionFact::kBackend:
      return same(here, there, outcome_of);
    case RevisionFact::kClass:
      return same(here, there, [](const RevisionAnswer& a) {
        return a.decided() ? a.conversion.decision.experts_class : std::string();
      });
    case RevisionFact::kSizes:
      return same(here, there, sizes_of);
    case RevisionFact::kSlices:
      return same(here, there, slices_by_checkpoint);
    case RevisionFact::kLayout:
      return same(here, there, layout_of);
    case RevisionFact::kNotes:
      return same(here, there, notes_of);
  }
  return true;
}

// Whether bytes differ if the fact differs.
bool moves_bytes(RevisionFact fact) {
  switch (fact) {
    case RevisionFact::kConverter:
    case RevisionFact::kBackend:
    case RevisionFact::kSizes:
    case RevisionFact::kSlices:
    case RevisionFact::kLayout:
      return true;
    default:
      return false;
  }
}

}  // namespace

RevisionDifference compare_revisions(const RevisionAnswer& here, const RevisionAnswer& there) {
  RevisionDifference out;
  for (auto i = static_cast<uint8_t>(RevisionFact::kCaller);
       i <= static_cast<uint8_t>(RevisionFact::kNotes); ++i) {
    const auto fact = static_cast<RevisionFact>(i);
    if (!equal(fact, here, there)) out.facts.push_back(fact);
  }
  out.repack = std::ranges::any_of(out.facts, moves_bytes);
  if (out.facts.empty()) {
    out.verdict = RevisionVerdict::kNothingChanges;
  } else if (!here.decided() || !there.decided()) {
    out.verdict = RevisionVerdict::kOneRefuses;
  } else {
    out.verdict = out.repack ? RevisionVerdict::kOtherBytes : RevisionVerdict::kBytesStay;
  }
  return out;
}

bool share_blobs(const RevisionAnswer& here, const RevisionAnswer& there) {
  return here.decided() && there.decided() && !compare_revisions(here, there).repack;
}

std::optional<bool> slices_by_checkpoint(const RevisionAnswer& answer) {
  if (!answer.decided() || answer.conversion.family != Family::kGeneric) return std::nullopt;
  const ParallelConfig& p = answer.conversion.deployment.parallel;
  if (p.enable_expert_parallel || world_of(p).ranks == 1) return std::nullopt;
  return answer.rules.loader.strides_by_checkpoint;
}

}  // namespace mxfp4
