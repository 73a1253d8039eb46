#include "lib/kernels/lane_network.hpp"

#include <utility>

namespace mxfp4::kernels {

std::optional<LaneNetwork> LaneNetwork::make(const TileLanes& from, const TileLanes& to) {
  LaneNetwork made(from);
  for (LaneLabel label : to) {
    if (!contains(from, label)) made.entering.push_back(label);
  }
  if (made.entering.size() > TilePlan::kMaxExchanges || !made.build(to)) return std::nullopt;
  return made;
}

bool LaneNetwork::build(const TileLanes& to) {
  // The wanted nibble bit comes from register bit 0, or from a byte bit through register bit 0:
  // both cost less than a swap inside a register.
  const auto entering_nibble = std::ranges::find(entering, to[0]);
  if (entering_nibble != entering.end()) {
    std::iter_swap(entering.begin(), entering_nibble);
  } else if (lanes_[0] != to[0]) {
    steps.lead_exchange = !entering.empty();
    steps.swap = entering.empty();
  }
  exiting = entering;
  arrange(to);
  if (steps.swap) std::swap(lanes_[0], lanes_[1]);
  if (steps.lead_exchange) exchange(0);
  if (lanes_[0] != to[0]) {
    steps.nibble_exchange = true;
    std::swap(lanes_[0], exiting.front());
  }
  steps.exchanges = static_cast<int>(exiting.size());
  steps.first_exchange = !exiting.empty() && !contains(to, exiting.front()) ? 1 : 0;
  for (size_t bit = static_cast<size_t>(steps.first_exchange); bit < exiting.size(); ++bit) {
    exchange(bit);
  }
  steps.last_order = reorder(to);
  return lanes_ == to;
}

void LaneNetwork::arrange(const TileLanes& to) {
  TileLanes wanted = lanes_;
  const auto rank = [&](LaneLabel label) {
    if (label == to[0]) return steps.swap ? 0 : 3;
    return contains(to, label) ? 1 : 2;
  };
  std::ranges::stable_sort(wanted.begin() + 1, wanted.end(), {}, rank);
  steps.first_order = reorder(wanted);
}

void LaneNetwork::exchange(size_t bit) {
  const LaneLabel leaves = lanes_[kLaneBits - 1];
  std::shift_right(lanes_.begin() + 1, lanes_.end(), 1);
  lanes_[1] = std::exchange(exiting[bit], leaves);
}

std::optional<TileNetwork::ByteOrder> LaneNetwork::reorder(const TileLanes& wanted) {
  if (wanted == lanes_) return std::nullopt;
  TileNetwork::ByteOrder order{};
  for (size_t to = 1; to < kLaneBits; ++to) {
    const auto from = static_cast<size_t>(std::ranges::find(lanes_, wanted[to]) - lanes_.begin());
    for (size_t byte = 0; byte < order.size(); ++byte) {
      if ((byte >> (to - 1) & 1) != 0) order[byte] |= static_cast<uint8_t>(1U << (from - 1));
    }
  }
  lanes_ = wanted;
  return order;
}

}  // namespace mxfp4::kernels
