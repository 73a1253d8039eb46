// libFuzzer target: any text as a line of `explain --batch`, and as a --target file. Accepted lines
// are answered.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "formats/config/deployment_json.hpp"
#include "lib/oracle/select.hpp"
#include "lib/revisions/revisions.hpp"
#include "tests/fuzz/fuzz_input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using mxfp4::fuzz::only_input_errors;
  const std::string_view text = mxfp4::fuzz::text_of(data, size);
  only_input_errors([&] { (void)mxfp4::parse_target(text); });
  only_input_errors([&] {
    const auto deployment = mxfp4::parse_deployment(text);
    const auto decision =
        mxfp4::select_backend(mxfp4::revision_by_name("vllm-2026-05-18"), deployment);
    (void)mxfp4::decision_json(decision, true);
  });
  return 0;
}
