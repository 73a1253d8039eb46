// The layouts of triton_kernels, by name; each is defined in a file of lib/layouts.
#pragma once

namespace mxfp4 {

struct Layout;

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

}  // namespace mxfp4
