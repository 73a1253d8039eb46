// Opens a checkpoint of any container. A file of its own, because HDF5 comes with it: the shared
// library opens a safetensors checkpoint by itself and does without.
#include "formats/checkpoint/open_source.hpp"
#include "formats/decision/open_checkpoint.hpp"
#include "formats/output/unfinished.hpp"

namespace mxfp4 {

OpenedCheckpoint open_checkpoint(const CheckpointOptions& options, const RuleSet& rules) {
  refuse_unfinished(options.path);
  return open_checkpoint(open_source(options.path), options, rules);
}

}  // namespace mxfp4
