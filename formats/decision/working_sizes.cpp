#include "formats/decision/working_sizes.hpp"

#include <algorithm>
#include <utility>

#include "lib/core/error.hpp"
#include "lib/layouts/output.hpp"

namespace mxfp4 {
namespace {

constexpr int64_t kLargestWorld = 1024;  // more ranks than any deployment has
constexpr size_t kEachSide = 2;

// Whether the conversion is refused because of its sizes.
bool refused_by_sizes(const Conversion& conversion, const OpenedCheckpoint* checkpoint) {
  return conversion.refusal && checkpoint != nullptr && conversion.layout != nullptr &&
         !refuses_scales(*conversion.layout) && conversion.defects.empty();
}

// The values that sizes_that_work() gives for one size.
std::vector<int64_t> values_that_work(ConversionRequest request, const OpenedCheckpoint* checkpoint,
                                      ParallelSize size) {
  const int64_t asked = (request.deployment.*size).value_or(1);
  const auto works = [&](int64_t value) {
    request.deployment.*size = value;
    try {
      return !decide_conversion(request, checkpoint).refusal;
    } catch (const Error&) {
      return false;  // --rank is none of the ranks then
    }
  };
  std::vector<int64_t> values;
  for (int64_t value = std::min(asked - 1, kLargestWorld); value > 0; --value) {
    if (values.size() == kEachSide) break;
    if (works(value)) values.insert(values.begin(), value);
  }
  const size_t most = values.size() + kEachSide;
  for (int64_t value = asked + 1; value <= std::min(2 * asked, kLargestWorld); ++value) {
    if (values.size() == most) break;
    if (works(value)) values.push_back(value);
  }
  return values;
}

}  // namespace

WorkingSizes sizes_that_work(const ConversionRequest& request, const Conversion& conversion,
                             const OpenedCheckpoint* checkpoint) {
  if (!refused_by_sizes(conversion, checkpoint)) return {};
  for (ParallelSize size :
       {&DeploymentFacts::tp_size, &DeploymentFacts::dp_size, &DeploymentFacts::pcp_size}) {
    if ((request.deployment.*size).value_or(1) == 1) continue;
    std::vector<int64_t> values = values_that_work(request, checkpoint, size);
    if (!values.empty()) return {size, std::move(values)};
  }
  return {};
}

}  // namespace mxfp4
