// Every layout value, each defined in the file of its name.
#pragma once

namespace mxfp4 {

struct Layout;

extern const Layout kIdentityLayout;
extern const Layout kIdentityInputMaximumLayout;
extern const Layout kDeepgemmF32Layout;
extern const Layout kDeepgemmPackedLayout;
extern const Layout kDeepgemmMegaMoeLayout;
extern const Layout kFlashinferTrtllmLayout;
extern const Layout kFlashinferCutlassMxfp8Layout;
extern const Layout kFlashinferCutlassSm90Layout;
extern const Layout kFlashinferCutlassSm90FoldedLayout;
extern const Layout kFlashinferCutlassSm90ScalesLayout;
extern const Layout kFlashinferCutlassMxfp8HalvesLayout;
extern const Layout kFlashinferCutlassSm90HalvesLayout;
extern const Layout kFlashinferCutlassSm90FoldedHalvesLayout;
extern const Layout kCutlassMxfp4Layout;
extern const Layout kMarlinW4A16Layout;
extern const Layout kMarlinW4A8Fp8Layout;
extern const Layout kHummingMmaLayout;
extern const Layout kHummingMmaNativeLayout;
extern const Layout kHummingMmaFp16Layout;
extern const Layout kHummingMmaNativeFp16Layout;
extern const Layout kHummingWgmmaLayout;
extern const Layout kHummingW4A8Layout;
extern const Layout kHummingInt8Layout;
extern const Layout kHummingFp8Layout;
extern const Layout kHummingFp8PackedKLayout;
extern const Layout kHummingFp8GlobalLayout;
extern const Layout kHummingUmmaLayout;
extern const Layout kHummingMxmmaFp8Layout;
extern const Layout kHummingMxmmaFp4Layout;
extern const Layout kHummingMxmmaFp4TilesLayout;
extern const Layout kCpuVnni32Layout;

extern const Layout kTritonHopperLayout;
extern const Layout kTritonHopperKInterleavedLayout;
extern const Layout kTritonHopper64Layout;
extern const Layout kTritonHopper64KInterleavedLayout;
extern const Layout kTritonHopper64OnesLayout;
extern const Layout kTritonHopper256OnesLayout;
extern const Layout kTritonHopperS4Layout;
extern const Layout kTritonHopperS4KInterleavedLayout;
extern const Layout kTritonBlackwellLayout;
extern const Layout kTritonBlackwellKInterleavedLayout;
extern const Layout kTritonCdna4Layout;
extern const Layout kTritonCdna4KInterleavedLayout;
extern const Layout kTritonCdna4RowInterleavedLayout;
extern const Layout kTritonStridedLayout;
extern const Layout kTritonStridedKInterleavedLayout;
extern const Layout kTritonStridedRowInterleavedLayout;
extern const Layout kTriton38StridedLayout;
extern const Layout kTriton38StridedKInterleavedLayout;
extern const Layout kTriton38StridedRowInterleavedLayout;
extern const Layout kTriton38Cdna4Layout;
extern const Layout kTriton38Cdna4KInterleavedLayout;
extern const Layout kTriton38Cdna4RowInterleavedLayout;
extern const Layout kTriton38Gfx1250Layout;
extern const Layout kTriton38Gfx1250KInterleavedLayout;
extern const Layout kTriton38Gfx1250RowInterleavedLayout;

extern const Layout kAiterW4a16Layout;
extern const Layout kAiterBf16HalvesLayout;
extern const Layout kAiterBf16SituLayout;
extern const Layout kAiterBf16SituA8w4Layout;
extern const Layout kAiterBf16SeparatedLayout;
extern const Layout kAiterInt4Layout;
extern const Layout kAiterTritonW4a4Layout;
extern const Layout kAiterTritonW4a4RowInterleavedLayout;
extern const Layout kAiterW4a8Fp8Layout;
extern const Layout kAiterW4a8Fp8StridedLayout;
extern const Layout kAiterW4a8Triton38StridedLayout;
extern const Layout kAiterW4a8Triton38Cdna4Layout;
extern const Layout kAiterW4a8Triton38Gfx1250Layout;
extern const Layout kAiterW4a4Layout;

}  // namespace mxfp4
