// Every backend of a revision beside the one that is chosen: how a deployment asks for it, or what
// has to change first; each proven by deciding again.
//
// Usage:
//   for (const Alternative& other : find_alternatives(request, &checkpoint)) ...
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "formats/conversion/decide.hpp"
#include "lib/oracle/needs.hpp"

namespace mxfp4 {

struct Alternative {
  Backend backend;
  // What the serving machine or the model's quantization has to change first. Empty: nothing.
  std::vector<Change> needs{};
  std::vector<Change> how{};  // what asks for it then: a variable, --moe-backend, an override
  // Decided after all these changes, and not refused; empty where no change was found.
  std::optional<Conversion> conversion{};
  int64_t blob_bytes = 0;  // of all ranks, before compression; 0 without a checkpoint

  [[nodiscard]] bool usable() const { return conversion.has_value() && needs.empty(); }
};

// Who asks, for needs.hpp. All three must outlive it.
[[nodiscard]] Asker asker_of(const ConversionRequest& request, const Conversion& conversion,
                             const OpenedCheckpoint* checkpoint);

// The request after the changes.
[[nodiscard]] ConversionRequest changed_request(const ConversionRequest& request,
                                                const Conversion& conversion,
                                                const OpenedCheckpoint* checkpoint,
                                                const std::vector<Change>& changes);

// One for each backend of the revision, the usable ones first. A forced backend is not forced here.
[[nodiscard]] std::vector<Alternative> find_alternatives(const ConversionRequest& request,
                                                         const Conversion& conversion,
                                                         const OpenedCheckpoint* checkpoint);

// The fewest changes of flags and variables alone after which nothing refuses; empty where none
// were found. Emulation is no way: it computes without MXFP4, many times slower.
[[nodiscard]] std::vector<Change> ways_out(const ConversionRequest& request,
                                           const Conversion& conversion,
                                           const OpenedCheckpoint* checkpoint);

}  // namespace mxfp4
