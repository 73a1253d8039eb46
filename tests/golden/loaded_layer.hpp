// A MoE layer in memory for tests, and a layout run over all of it in both directions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lib/core/deployment.hpp"
#include "lib/layouts/output.hpp"
#include "lib/layouts/run_output.hpp"
#include "tests/golden/golden_file.hpp"

namespace mxfp4::test {

struct LoadedLayer {
  LoadedSpec spec;
  std::map<Slot, Tensor> slots;

  [[nodiscard]] SlotBytes bytes() const;
};

// From tensors named as slots; the sizes come from the shapes of w13_weight.
[[nodiscard]] LoadedLayer layer_from_tensors(const Tensors& tensors);

// One expert of a layer, as a layer of its own.
[[nodiscard]] LoadedLayer expert_of(const LoadedLayer& layer, int64_t expert);

// The target of a case: backend, family, platform, arch and knobs. Facts that mean nothing ("any",
// "none") stay unset.
[[nodiscard]] Target target_from_fields(const Fields& fields);

// Every output of the layer, granule by granule, into buffers that were filled with `poison`.
[[nodiscard]] Tensors run_layout(const Layout& layout, const LayoutInput& input,
                                 const LoadedLayer& layer, std::byte poison);

// The slots that the outputs restore.
[[nodiscard]] std::map<Slot, Tensor> undo_layout(const std::vector<Output>& outputs,
                                                 const LoadedSpec& loaded, const Tensors& written);

// Expects that undoing `written` gives the layer's slots back, except where an output says that
// something is lost, and input scales that no output takes.
void expect_restored(const std::vector<Output>& outputs, const LoadedLayer& layer,
                     const Tensors& written);

// Position of the first byte that differs, or -1.
[[nodiscard]] int64_t first_difference(const std::vector<std::byte>& a,
                                       const std::vector<std::byte>& b);

}  // namespace mxfp4::test
