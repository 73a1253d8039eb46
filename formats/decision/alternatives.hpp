// Finds for every backend of a revision, not only the chosen one, how a deployment asks for it, or
// what has to change first. Each answer is proven by deciding again.
//
// Usage:
//   for (const Alternative& other : find_alternatives(request, conversion, &checkpoint)) ...
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "formats/decision/decide.hpp"
#include "lib/oracle/needs.hpp"

namespace mxfp4 {

struct Alternative {
  Backend backend;
  // What the serving machine or the model's quantization has to change first. Empty: nothing.
  std::vector<Change> needs{};
  std::vector<Change> how{};  // what then asks for it: a variable, --moe-backend, an override
  // Decided after all these changes, and not refused; empty if no changes were found.
  std::optional<Conversion> conversion{};
  int64_t blob_bytes = 0;  // of all ranks, before compression; 0 without a checkpoint

  [[nodiscard]] bool usable() const { return conversion.has_value() && needs.empty(); }
};

// The Asker of needs.hpp. All three arguments must outlive it.
[[nodiscard]] Asker asker_of(const ConversionRequest& request, const Conversion& conversion,
                             const OpenedCheckpoint* checkpoint);

// The request after the changes. The oracle chooses the backend, even where it was forced before.
[[nodiscard]] ConversionRequest changed_request(const ConversionRequest& request,
                                                const Conversion& conversion,
                                                const OpenedCheckpoint* checkpoint,
                                                const std::vector<Change>& changes);

// One alternative for each backend of the revision, the usable ones first.
[[nodiscard]] std::vector<Alternative> find_alternatives(const ConversionRequest& request,
                                                         const Conversion& conversion,
                                                         const OpenedCheckpoint* checkpoint);

// The fewest changes of flags and variables after which the conversion is not refused; empty if
// none were found. A backend that emulates does not count.
[[nodiscard]] std::vector<Change> ways_out(const ConversionRequest& request,
                                           const Conversion& conversion,
                                           const OpenedCheckpoint* checkpoint);

}  // namespace mxfp4
