#include "lib/layouts/all_layouts.hpp"

#include <algorithm>
#include <array>

#include "lib/layouts/aiter_layouts.hpp"
#include "lib/layouts/flashinfer_layouts.hpp"
#include "lib/layouts/humming_layouts.hpp"
#include "lib/layouts/layout.hpp"
#include "lib/layouts/other_layouts.hpp"
#include "lib/layouts/triton_layouts.hpp"

namespace mxfp4 {
namespace {

auto sorted_layouts() {
  std::array layouts = {
      &kAiterBf16HalvesLayout,
      &kAiterBf16SeparatedLayout,
      &kAiterBf16SituA8w4Layout,
      &kAiterBf16SituLayout,
      &kAiterInt4Layout,
      &kAiterTritonW4a4Layout,
      &kAiterTritonW4a4RowInterleavedLayout,
      &kAiterW4a16Layout,
      &kAiterW4a4Layout,
      &kAiterW4a8Fp8Layout,
      &kAiterW4a8Fp8StridedLayout,
      &kAiterW4a8Triton38Cdna4Layout,
      &kAiterW4a8Triton38Gfx1250Layout,
      &kAiterW4a8Triton38StridedLayout,
      &kCpuVnni32Layout,
      &kCutlassMxfp4Layout,
      &kDeepgemmF32Layout,
      &kDeepgemmMegaMoeLayout,
      &kDeepgemmPackedLayout,
      &kFlashinferCutlassMxfp8HalvesLayout,
      &kFlashinferCutlassMxfp8Layout,
      &kFlashinferCutlassSm90FoldedHalvesLayout,
      &kFlashinferCutlassSm90FoldedLayout,
      &kFlashinferCutlassSm90HalvesLayout,
      &kFlashinferCutlassSm90Layout,
      &kFlashinferCutlassSm90ScalesLayout,
      &kFlashinferTrtllmLayout,
      &kHummingFp8GlobalLayout,
      &kHummingFp8Layout,
      &kHummingFp8PackedKLayout,
      &kHummingInt8Layout,
      &kHummingMmaFp16Layout,
      &kHummingMmaLayout,
      &kHummingMmaNativeFp16Layout,
      &kHummingMmaNativeLayout,
      &kHummingMxmmaFp4Layout,
      &kHummingMxmmaFp4TilesLayout,
      &kHummingMxmmaFp8Layout,
      &kHummingUmmaLayout,
      &kHummingW4A8Layout,
      &kHummingWgmmaLayout,
      &kIdentityInputMaximumLayout,
      &kIdentityLayout,
      &kMarlinW4A16Layout,
      &kMarlinW4A8Fp8Layout,
      &kTriton38Cdna4KInterleavedLayout,
      &kTriton38Cdna4Layout,
      &kTriton38Cdna4RowInterleavedLayout,
      &kTriton38Gfx1250KInterleavedLayout,
      &kTriton38Gfx1250Layout,
      &kTriton38Gfx1250RowInterleavedLayout,
      &kTriton38StridedKInterleavedLayout,
      &kTriton38StridedLayout,
      &kTriton38StridedRowInterleavedLayout,
      &kTritonBlackwellKInterleavedLayout,
      &kTritonBlackwellLayout,
      &kTritonCdna4KInterleavedLayout,
      &kTritonCdna4Layout,
      &kTritonCdna4RowInterleavedLayout,
      &kTritonHopper256OnesLayout,
      &kTritonHopper64KInterleavedLayout,
      &kTritonHopper64Layout,
      &kTritonHopper64OnesLayout,
      &kTritonHopperKInterleavedLayout,
      &kTritonHopperLayout,
      &kTritonHopperS4KInterleavedLayout,
      &kTritonHopperS4Layout,
      &kTritonStridedKInterleavedLayout,
      &kTritonStridedLayout,
      &kTritonStridedRowInterleavedLayout,
  };
  std::ranges::sort(layouts, {}, [](const Layout* layout) { return id_of(*layout); });
  return layouts;
}

}  // namespace

std::span<const Layout* const> all_layouts() {
  static const auto kLayouts = sorted_layouts();
  return kLayouts;
}

const Layout* layout_by_id(std::string_view id) {
  for (const Layout* layout : all_layouts()) {
    if (id_of(*layout) == id) return layout;
  }
  return nullptr;
}

}  // namespace mxfp4
