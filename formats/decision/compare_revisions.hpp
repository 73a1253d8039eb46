// Compares how two engine revisions answer one question: which facts differ, and whether a blob
// made for one serves the other.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "formats/decision/decide.hpp"

namespace mxfp4 {

// A revision's answer. If the revision does not know a name in the question, `error` names it, and
// `conversion` is empty.
struct RevisionAnswer {
  const RuleSet& rules;
  const Conversion& conversion;
  const std::optional<Error>& error;

  [[nodiscard]] bool decided() const { return !error && !conversion.refusal; }
};

enum class RevisionFact : uint8_t {
  kCaller,     // the method class that serves the checkpoint
  kConverter,  // the family
  kPackages,
  kRouting,
  kBackend,  // or the reason why there is none
  kClass,    // of the experts
  kSizes,    // of rank 0; without a checkpoint, the multiples to which they are rounded
  kSlices,   // where ranks begin
  kLayout,
  kNotes,  // and known defects
};

enum class RevisionVerdict : uint8_t {
  kNothingChanges,
  kBytesStay,   // a blob made for one serves the other
  kOtherBytes,  // a blob made for one does not serve the other
  kOneRefuses,  // one makes no blob
};

struct RevisionDifference {
  std::vector<RevisionFact> facts;  // that differ, in the order above
  bool repack = false;              // bytes depend on one of them
  RevisionVerdict verdict = RevisionVerdict::kNothingChanges;
};

[[nodiscard]] RevisionDifference compare_revisions(const RevisionAnswer& here,
                                                   const RevisionAnswer& there);

// Whether both revisions decide, and a blob made for one serves the other.
[[nodiscard]] bool share_blobs(const RevisionAnswer& here, const RevisionAnswer& there);

// Whether ranks begin at multiples of I / ranks (true) or of the padded size (false). Empty except
// for tensor parallel slices of the generic loader, the only case in which revisions differ.
[[nodiscard]] std::optional<bool> slices_by_checkpoint(const RevisionAnswer& answer);

}  // namespace mxfp4
