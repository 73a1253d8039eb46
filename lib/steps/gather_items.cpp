#include "lib/steps/gather_items.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "lib/kernels/gather_source.h"

namespace mxfp4 {
namespace {

// Of a digit that is not the last one, so that its magic number is no shift.
constexpr int64_t kMostExtent = int64_t{1} << 26;

// A digit of an item's number: what each of it adds to a nibble of the input and a word of the output.
struct ItemDigit {
  int64_t extent;
  int64_t in;
  int64_t out;
};

// Puts first, for threads that are neighbours, what lies together in the output, then what does in the
// input.
void bring_near(std::vector<ItemDigit>& digits) {
  constexpr int64_t kNeighbours = 8;
  constexpr int64_t kSector = 64;  // nibbles that the GPU's memory moves at once
  const auto part = [&](size_t at, int64_t extent) {
    const ItemDigit whole = digits[at];
    digits[at] = {extent, whole.in, whole.out};
    if (extent == whole.extent) return;
    digits.insert(digits.begin() + static_cast<int64_t>(at) + 1,
                  {whole.extent / extent, whole.in * extent, whole.out * extent});
  };
  size_t front = 0;
  for (int64_t lanes = 1; front < digits.size() && lanes < kNeighbours; ++front) {
    const int64_t divisor = std::gcd(digits[front].extent, kNeighbours / lanes);
    if (divisor > 1) part(front, divisor);
    lanes *= digits[front].extent;
  }
  for (size_t i = front; i < digits.size(); ++i) {
    if (digits[i].in >= kSector) continue;
    if (digits[i].extent >= kSector) {
      part(i, std::gcd(digits[i].extent, kSector / std::max<int64_t>(1, digits[i].in)));
    }
    std::rotate(digits.begin() + static_cast<int64_t>(front),
                digits.begin() + static_cast<int64_t>(i),
                digits.begin() + static_cast<int64_t>(i) + 1);
    ++front;
  }
}

// The four bytes of the input, each by the place of its even nibble, that hold the eight nibbles of a word;
// empty if there are more or fewer of them. Fills `order`: kGatherLow and kGatherHigh.
std::vector<uint32_t> bytes_of(std::span<const uint32_t> places, std::array<uint32_t, 2>& order) {
  std::vector<uint32_t> bytes;
  for (uint32_t nibble = 0; nibble < GATHER_MOST_SPAN; ++nibble) {
    const uint32_t half = places[nibble] % 2;
    const auto at = std::ranges::find(bytes, places[nibble] - half) - bytes.begin();
    if (at == 4) return {};
    if (at == std::ssize(bytes)) bytes.push_back(places[nibble] - half);
    order.at(nibble % 2) |= (word(at) + 4 * half) << (4 * (nibble / 2));
  }
  if (bytes.size() != 4) bytes.clear();
  return bytes;
}

// The digits of a word's number: extent, magic, stride of each.
std::vector<ItemDigit> items_of(std::span<const uint32_t> digits) {
  std::vector<ItemDigit> items;
  int64_t out = 1;
  for (; !digits.empty(); digits = digits.subspan(3)) {
    if (digits[0] > 1) items.push_back({digits[0], digits[2], out});
    out *= digits[0];
  }
  return items;
}

}  // namespace

void add_quick_way(int64_t rest, std::vector<uint32_t>& plan) {
  const auto chain = std::span<const uint32_t>(plan).subspan(plan[kGatherInnerAt]);
  const auto places = chain.subspan(1, GATHER_MOST_SPAN);
  const bool word_map = plan[kGatherMap] == 2 && plan[plan[kGatherOuterAt]] == kGatherEnd;
  if (1U << chain[0] != GATHER_MOST_SPAN || plan[kGatherOutBytes] % 4 != 0) return;
  if (plan[kGatherInBytes] < kLeastQuick) return;
  if (plan[kGatherMap] != 0 && !word_map) return;
  std::array<uint32_t, 2> order{};
  const std::vector<uint32_t> bytes = bytes_of(places, order);
  if (bytes.empty()) return;
  std::vector<ItemDigit> items =
      items_of(chain.subspan(2 + GATHER_MOST_SPAN, 3 * size_t{chain[1 + GATHER_MOST_SPAN]}));
  const auto begins_at = [&](int64_t nibbles, size_t count) {
    return rest % nibbles == 0 &&
           std::ranges::all_of(items, [&](const auto& i) { return i.in % nibbles == 0; }) &&
           std::ranges::all_of(std::span(bytes).first(count),
                               [&](uint32_t byte) { return byte % nibbles == 0; });
  };
  uint32_t count = 4;
  uint32_t words = 1;
  int64_t apart = 1;
  const auto four = std::ranges::find_if(
      items, [](const auto& digit) { return digit.in == 2 && digit.extent % 4 == 0; });
  if (plan[kGatherUnit] == kMostTogether) {
    count = 1;
    words = 4;
    items.front() = {items.front().extent / 4, kMostTogether, 4};
  } else if (begins_at(8, 1) && bytes[1] == bytes[0] + 2 && bytes[2] == bytes[0] + 4 &&
             bytes[3] == bytes[0] + 6) {
    count = 1;
  } else if (four != items.end()) {
    const ItemDigit bytewise = std::exchange(*four, {four->extent / 4, 8, 4 * four->out});
    if (begins_at(8, 4)) {
      words = 4;
      apart = bytewise.out;
    } else {
      *four = bytewise;
    }
  }
  if (!begins_at(2, 4)) return;
  std::erase_if(items, [](const auto& digit) { return digit.extent == 1; });
  if (items.size() > 1) bring_near(items);
  for (size_t d = 0; d + 1 < items.size(); ++d) {
    if (items[d].extent > kMostExtent) return;
  }
  plan[kGatherWords] = words;
  plan[kGatherApart] = word(apart);
  plan[kGatherPlaces] = count;
  std::ranges::copy(bytes, plan.begin() + kGatherPlace);
  std::ranges::copy(order, plan.begin() + kGatherLow);
  plan[kGatherItemsAt] = word(std::ssize(plan));
  plan.push_back(word(std::ssize(items)));
  for (const auto& [extent, in, to] : items) {
    plan.insert(plan.end(), {word(extent), magic_of(word(extent)), word(in), word(to)});
  }
}

}  // namespace mxfp4
