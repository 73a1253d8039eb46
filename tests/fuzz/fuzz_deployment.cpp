// libFuzzer target: any text as a line of `explain --batch`, and as a --target file. Accepted lines
// are answered.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "formats/deployment_json.hpp"
#include "lib/core/error.hpp"
#include "lib/oracle/select.hpp"
#include "lib/revisions/revisions.hpp"

namespace {

template <class Body>
void only_input_errors(Body&& body) {
  try {
    body();
  } catch (const mxfp4::Error& error) {
    if (error.kind() != mxfp4::ErrorKind::kInput) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  only_input_errors([&] { (void)mxfp4::parse_target(text); });
  only_input_errors([&] {
    const auto deployment = mxfp4::parse_deployment(text);
    const auto decision = mxfp4::select_backend(mxfp4::default_revision(), deployment);
    (void)mxfp4::decision_json(decision, true);
  });
  return 0;
}
