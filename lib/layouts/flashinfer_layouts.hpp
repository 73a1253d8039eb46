// The layouts of FlashInfer, by name; each is defined in a file of lib/layouts.
#pragma once

namespace mxfp4 {

struct Layout;

extern const Layout kFlashinferTrtllmLayout;
extern const Layout kFlashinferCutlassMxfp8Layout;
extern const Layout kFlashinferCutlassSm90Layout;
extern const Layout kFlashinferCutlassSm90FoldedLayout;
extern const Layout kFlashinferCutlassSm90ScalesLayout;
extern const Layout kFlashinferCutlassMxfp8HalvesLayout;
extern const Layout kFlashinferCutlassSm90HalvesLayout;
extern const Layout kFlashinferCutlassSm90FoldedHalvesLayout;

}  // namespace mxfp4
