// The layouts of HUMMING, by name; each is defined in a file of lib/layouts.
#pragma once

namespace mxfp4 {

struct Layout;

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

}  // namespace mxfp4
