// Bytes that a serving node reads at its start, by the way that the experts come. Reckoned from headers.
#pragma once

#include "formats/decision/conversion.hpp"
#include "formats/decision/open_checkpoint.hpp"

namespace mxfp4 {

struct NodeReads {
  std::string_view way;  // a literal
  int64_t node = 0;      // bytes of the node that reads most
  int64_t all = 0;       // of all nodes together
};

// Every tensor; the 4 KiB pages in which the experts of the node's ranks have a byte; the ranks' files of a blob,
// before compression: each with the tensors that are not experts. `conversion` has every rank, and no refusal.
// `stated`: bytes of all tensors, if the source does not list them all. A tensor whose place in its file is not
// known is taken to begin within a page. Throws Error::usage unless `nodes` nodes hold the ranks alike.
[[nodiscard]] std::vector<NodeReads> node_reads(const OpenedCheckpoint& checkpoint,
                                                const Conversion& conversion, int64_t nodes,
                                                int64_t stated);

}  // namespace mxfp4
