// The layouts of AITER, by name; each is defined in a file of lib/layouts.
#pragma once

namespace mxfp4 {

struct Layout;

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
