#include "lib/revisions/tested_libraries.hpp"

#include "lib/layouts/all.hpp"

namespace mxfp4 {
namespace {

constexpr std::string_view kFlashinfer = "flashinfer";

std::vector<TestedLibrary> table() {
  const std::vector<std::string_view> every = {"0.6.11.post2", "0.6.13",     "0.6.14",
                                               "0.6.16.post3", "0.6.18",     "0.6.18.post1",
                                               "0.7.0.post1",  "0.7.2.post1"};
  const std::vector<std::string_view> interleaved = {"0.6.11.post2", "0.6.13", "0.6.14",
                                                     "0.6.16.post3"};
  const std::vector<std::string_view> folded = {"0.6.18", "0.6.18.post1", "0.7.0.post1",
                                                "0.7.2.post1"};
  return {
      {&kFlashinferTrtllmLayout, kFlashinfer, every},
      {&kFlashinferCutlassMxfp8Layout, kFlashinfer, every},
      {&kFlashinferCutlassMxfp8HalvesLayout,
       kFlashinfer,
       {"0.6.16.post3", "0.6.18", "0.6.18.post1", "0.7.0.post1", "0.7.2.post1"}},
      {&kFlashinferCutlassSm90Layout, kFlashinfer, interleaved},
      {&kFlashinferCutlassSm90HalvesLayout, kFlashinfer, {"0.6.16.post3"}},
      {&kFlashinferCutlassSm90FoldedLayout, kFlashinfer, folded},
      {&kFlashinferCutlassSm90FoldedHalvesLayout, kFlashinfer, folded},
  };
}

}  // namespace

std::span<const TestedLibrary> tested_libraries() {
  static const std::vector<TestedLibrary> kTable = table();
  return kTable;
}

}  // namespace mxfp4
