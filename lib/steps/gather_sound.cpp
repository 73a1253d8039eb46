// is_sound() of gather_plan.hpp: a plan is checked where it is made, not on the GPU.
#include "lib/kernels/gather_source.h"
#include "lib/steps/gather_items.hpp"
#include "lib/steps/gather_plan.hpp"

namespace mxfp4 {
namespace {

// Words [at, at + count) of a plan, or none.
std::span<const uint32_t> part_of(std::span<const uint32_t> plan, uint64_t at, uint64_t count) {
  if (at > plan.size() || count > plan.size() - at) return {};
  return plan.subspan(at, count);
}

// Whether the operations from `at` on lie in the plan, and end.
bool operations_end(std::span<const uint32_t> plan, uint64_t at) {
  while (true) {
    const auto head = part_of(plan, at, 1);
    if (head.empty()) return false;
    if (head[0] == kGatherEnd) return true;
    const auto words = part_of(plan, at, head[0] == kGatherDigits ? 2 : 8);
    if (words.empty()) return false;
    at += words.size();
    if (head[0] == kGatherDigits) {
      if (words[1] == 0) return false;
      at += 3 * uint64_t{words[1]};
    } else if (head[0] == kGatherRows) {
      at += words[3];
    } else {
      return false;
    }
  }
}

bool chain_ends(std::span<const uint32_t> plan, uint64_t at) {
  const auto span = part_of(plan, at, 2 + GATHER_MOST_SPAN);
  if (span.empty() || span[0] > 3 || span.back() == 0) return false;
  return operations_end(plan, at + span.size() + 3 * uint64_t{span.back()});
}

// Units for which the kernel has code.
bool is_unit(uint32_t unit) {
  return unit == 32 || unit == 8 || unit == 4 || unit == 2 || unit == 1;
}

bool map_lies_in(std::span<const uint32_t> plan) {
  const uint32_t in = plan[kGatherMapIn];
  const uint32_t out = plan[kGatherMapOut];
  const uint32_t span =
      1U << plan[plan[kGatherInnerAt]];  // or an element has more bits than the map knows
  const bool sizes =
      (in == 1 || in == 2 || in == 4) && (out == 1 || out == 2 || out == 4) && span <= 2 * in;
  const auto map = part_of(plan, plan[kGatherMapAt], plan[kGatherMapWords]);
  if (!sizes || map.empty()) return false;
  if (plan[kGatherMap] == 1) return in < 4 && map.size() == size_t{1} << (8 * in);
  if (map.size() % 2 != 0 || in != 4) return false;
  for (size_t i = 0; i < map.size(); i += 2) {
    if (map[i] > 31) return false;
  }
  return true;
}

}  // namespace

bool is_sound(std::span<const uint32_t> plan, int64_t in_bytes, int64_t out_bytes) {
  if (plan.size() < kGatherHeadWords || in_bytes > kMostGatherBytes ||
      out_bytes > kMostGatherBytes) {
    return false;
  }
  if (plan[kGatherOutBytes] != out_bytes || plan[kGatherInBytes] != in_bytes) return false;
  if (!is_unit(plan[kGatherUnit]) || !is_unit(plan[kGatherOuterUnit])) return false;
  const uint32_t words = plan[kGatherWords];
  if (words != 0) {
    const auto items = part_of(plan, plan[kGatherItemsAt], 1);
    if ((words != 1 && words != 4) || out_bytes % (int64_t{4} * words) != 0 ||
        in_bytes < kLeastQuick || items.empty() ||
        part_of(plan, plan[kGatherItemsAt], 1 + 4 * uint64_t{items[0]}).empty()) {
      return false;
    }
  }
  return chain_ends(plan, plan[kGatherInnerAt]) && operations_end(plan, plan[kGatherOuterAt]) &&
         (plan[kGatherMap] == 0 || map_lies_in(plan));
}

}  // namespace mxfp4
