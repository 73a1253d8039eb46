#include "lib/steps/gather_plan.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

#include "lib/core/overloaded.hpp"
#include "lib/kernels/gather_source.h"
#include "lib/kernels/permute.hpp"

namespace mxfp4 {
namespace {

constexpr int64_t kMostBytes = (int64_t{1} << 31) - 1;
constexpr int64_t kMostTogether = 32;  // nibbles: 16 bytes
// Of a digit that is not the last one, so that its magic number is no shift.
constexpr int64_t kMostExtent = int64_t{1} << 26;

uint32_t word(int64_t value) { return static_cast<uint32_t>(value); }

uint32_t magic_of(uint32_t extent) {
  if (std::has_single_bit(extent)) return static_cast<uint32_t>(std::countr_zero(extent));
  return static_cast<uint32_t>((uint64_t{1} << 32) / extent);
}

struct Digit {
  int64_t extent;
  int64_t stride;
};

// Operations from a chain's output back, and the largest power of two of nibbles that all of them
// keep together.
struct Chain {
  std::vector<std::vector<uint32_t>> operations;  // in the order of the steps
  std::vector<Digit> last;                        // the last one's digits, if it has some
  int64_t together = kMostTogether;
  int64_t rest = kMostTogether;  // the same without the last one's digits

  void keep(int64_t nibbles) { together = std::gcd(together, nibbles); }
  void add(std::vector<uint32_t> operation) {
    operations.push_back(std::move(operation));
    last.clear();
    rest = together;
  }

  [[nodiscard]] std::vector<uint32_t> words() const {
    std::vector<uint32_t> all;
    for (size_t i = operations.size(); i-- > 0;) {
      all.insert(all.end(), operations[i].begin(), operations[i].end());
    }
    all.push_back(kGatherEnd);
    return all;
  }
};

void append_digits(const std::vector<Digit>& digits, std::vector<uint32_t>& words) {
  words.push_back(word(std::ssize(digits)));
  for (const auto& [extent, stride] : digits) {
    words.insert(words.end(), {word(extent), magic_of(word(extent)), word(stride)});
  }
}

// The words of a chain that makes `nibbles` nibbles, its first digits as a span of `most` nibbles
// at most: a place is looked up once for all of them.
std::vector<uint32_t> words_with_span(Chain chain, int64_t nibbles, int64_t most) {
  std::vector<Digit> digits = {{nibbles, 1}};
  if (!chain.last.empty()) {
    digits = chain.last;
    chain.operations.pop_back();
  }
  std::vector<int64_t> places = {0};
  while (!digits.empty()) {
    auto& [extent, stride] = digits.front();
    const int64_t part = std::gcd(extent, most / std::ssize(places));
    if (part == 1 && extent != 1) break;
    const auto count = std::ssize(places);
    for (int64_t i = count; i < part * count; ++i) {
      places.push_back(places[static_cast<size_t>(i - count)] + stride);
    }
    extent /= part;
    stride *= part;
    if (extent == 1) digits.erase(digits.begin());
  }
  if (digits.empty()) digits.push_back({1, 0});
  std::vector<uint32_t> words = {word(std::countr_zero(places.size()))};
  places.resize(GATHER_MOST_SPAN);
  std::ranges::transform(places, std::back_inserter(words), word);
  append_digits(digits, words);
  const std::vector<uint32_t> rest = chain.words();
  words.insert(words.end(), rest.begin(), rest.end());
  return words;
}

void add_permute(const Permute& step, Chain& chain) {
  std::vector<int64_t> dims = step.dims;
  std::vector<int> order = step.order;
  order.push_back(static_cast<int>(dims.size()));
  dims.push_back(unit_bits(step.unit) / 4);
  // From the innermost axis of the output on; neighbours that stay neighbours are one digit.
  std::vector<Digit> digits;
  for (size_t i = order.size(); i-- > 0;) {
    const auto axis = static_cast<size_t>(order[i]);
    int64_t stride = 1;
    for (size_t inner = axis + 1; inner < dims.size(); ++inner) stride *= dims[inner];
    if (dims[axis] == 1) continue;
    if (!digits.empty() && digits.back().extent * digits.back().stride == stride) {
      digits.back().extent *= dims[axis];
    } else {
      digits.push_back({dims[axis], stride});
    }
  }
  if (digits.empty() || (digits.size() == 1 && digits[0].stride == 1)) return;
  const int64_t before = chain.together;
  const bool run = digits[0].stride == 1;
  chain.keep(run ? digits[0].extent : 1);
  for (size_t d = run ? 1 : 0; d < digits.size(); ++d) chain.keep(digits[d].stride);
  std::vector<uint32_t> op = {kGatherDigits};
  append_digits(digits, op);
  chain.add(std::move(op));
  chain.last = std::move(digits);
  chain.rest = before;
}

void add_rows(const GatherRows& step, Chain& chain) {
  const int64_t row = 2 * step.row_bytes;
  std::vector<uint32_t> op = {kGatherRows, word(row), magic_of(word(row)),
                              word(std::ssize(step.source)), 0};
  for (const int64_t source : step.source) op.push_back(word(source));
  chain.keep(row);
  chain.add(std::move(op));
}

void add_pad(const PadMatrix& step, Chain& chain, int64_t in_row_bytes, int64_t first) {
  const int64_t row = 2 * step.out_row_bytes;
  for (const int64_t bytes : {step.out_row_bytes, step.row_bytes, in_row_bytes, first}) {
    chain.keep(2 * bytes);
  }
  chain.add({kGatherPad, word(row), magic_of(word(row)), word(2 * step.row_bytes), word(step.rows),
             std::to_integer<uint32_t>(step.fill), word(2 * in_row_bytes), word(2 * first)});
}

// Whether the rows and columns lie in the stored matrix, and make the program's input.
bool lies_in(const TakenRows& taken, int64_t in_bytes) {
  const auto rows = std::ssize(taken.source);
  return rows * taken.row_bytes == in_bytes && taken.columns <= taken.row_bytes &&
         taken.first >= 0 && taken.columns >= 0 &&
         taken.first + taken.columns <= taken.stored_row_bytes &&
         taken.stored_rows * taken.stored_row_bytes <= kMostBytes &&
         std::ranges::all_of(taken.source, [&](int64_t row) {
           return row >= TakenRows::kFilled && row < taken.stored_rows;
         });
}

void add_taken(const TakenRows& taken, Chain& chain) {
  add_rows({.row_bytes = taken.stored_row_bytes, .source = taken.source}, chain);
  chain.operations.back()[4] = std::to_integer<uint32_t>(taken.fill);
  add_pad({.rows = std::ssize(taken.source),
           .row_bytes = taken.columns,
           .out_row_bytes = taken.row_bytes,
           .fill = taken.fill},
          chain, taken.stored_row_bytes, taken.first);
}

// The words of an element map; empty where there are none.
std::vector<uint32_t> map_words(const Recoding& recoding) {
  const bool table = recoding.in_bytes <= 2 && recoding.out_bytes <= 4;
  if (!table && !recoding.moves_bits) return {};
  const auto value_of = [&](uint32_t element) {
    uint32_t value = 0;
    recoding.forward(
        {reinterpret_cast<const std::byte*>(&element), static_cast<size_t>(recoding.in_bytes)},
        {reinterpret_cast<std::byte*>(&value), static_cast<size_t>(recoding.out_bytes)});
    return value;
  };
  std::vector<uint32_t> words;
  if (recoding.moves_bits) {
    std::map<uint32_t, uint32_t> moved;  // distance to the left, round; bits
    for (uint32_t bit = 0; bit < 32; ++bit) {
      const auto to = static_cast<uint32_t>(std::countr_zero(value_of(uint32_t{1} << bit)));
      moved[(to - bit) % 32] |= uint32_t{1} << bit;
    }
    for (const auto& [distance, bits] : moved) words.insert(words.end(), {distance, bits});
    return words;
  }
  for (uint32_t element = 0; element < uint32_t{1} << (8 * recoding.in_bytes); ++element) {
    words.push_back(value_of(element));
  }
  return words;
}

// Says the quick way of a plan, if it has one: each word is four bytes that the inner chain finds by
// themselves, and their nibbles in another order, perhaps with an element map of the word behind.
void add_quick_way(const Chain& inner, GatherPlan& plan) {
  const auto chain = std::span<const uint32_t>(plan).subspan(plan[kGatherInnerAt]);
  const auto places = chain.subspan(1, GATHER_MOST_SPAN);
  const auto digits = chain.subspan(2 + GATHER_MOST_SPAN, 3 * size_t{chain[1 + GATHER_MOST_SPAN]});
  const bool word_map = plan[kGatherMap] == 2 && plan[plan[kGatherOuterAt]] == kGatherEnd;
  if (1U << chain[0] != GATHER_MOST_SPAN || plan[kGatherUnit] == kMostTogether) return;
  if (inner.rest % 2 != 0 || (plan[kGatherMap] != 0 && !word_map)) return;
  for (size_t d = 2; d < digits.size(); d += 3) {
    if (digits[d] % 2 != 0) return;
  }
  std::vector<uint32_t> bytes;
  std::array<uint32_t, 3> words{};  // kGatherBytes, kGatherLow, kGatherHigh
  for (uint32_t nibble = 0; nibble < GATHER_MOST_SPAN; ++nibble) {
    const auto at = std::ranges::find(bytes, places[nibble] / 2) - bytes.begin();
    if (at == 4) return;
    if (at == std::ssize(bytes)) {
      bytes.push_back(places[nibble] / 2);
      words[0] |= nibble << (8 * at);
    }
    const uint32_t from = word(at) + (places[nibble] % 2 == 0 ? 0 : 4);
    words.at(1 + nibble % 2) |= from << (4 * (nibble / 2));
  }
  std::ranges::copy(words, plan.begin() + kGatherBytes);
}

// The chains and the map of a program, step by step.
struct Composition {
  Chain inner;
  Chain outer;
  const Recoding* map = nullptr;
  int64_t map_count = 0;  // elements

  bool add(const Step& step) {
    Chain& chain = map != nullptr ? outer : inner;
    return std::visit(
        Overloaded{
            [&](const Permute& s) { return add_permute(s, chain), true; },
            [&](const GatherRows& s) { return add_rows(s, chain), true; },
            [&](const PadMatrix& s) { return add_pad(s, chain, s.row_bytes, 0), true; },
            [&](const Recode& s) {
              if (map != nullptr) return false;
              map = s.recoding;
              map_count = s.count;
              return true;
            },
            [&](const Custom& s) {
              return std::ranges::all_of(s.same_as,
                                         [&](const auto& part) {
                                           return std::visit(
                                               [&](const auto& p) { return add(Step(p)); }, part);
                                         }) &&
                     !s.same_as.empty();
            },
        },
        step);
  }
};

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
    const auto words = part_of(plan, at,
                               head[0] == kGatherDigits ? 2
                               : head[0] == kGatherRows ? 5
                                                        : 8);
    if (words.empty()) return false;
    at += words.size();
    if (head[0] == kGatherDigits) {
      if (words[1] == 0) return false;
      at += 3 * uint64_t{words[1]};
    } else if (head[0] == kGatherRows) {
      at += words[3];
    } else if (head[0] != kGatherPad) {
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

int64_t raw_bytes(const GatherPlan& plan) { return plan[kGatherInBytes]; }
int64_t made_bytes(const GatherPlan& plan) { return plan[kGatherOutBytes]; }
bool is_quick(const GatherPlan& plan) { return plan[kGatherBytes] != 0; }

std::optional<GatherPlan> gather_plan(const Program& program, const TakenRows* taken) {
  const int64_t out = program.out_bytes();
  if (out == 0 || program.in_bytes() > kMostBytes || out > kMostBytes) return std::nullopt;
  if (taken != nullptr && !lies_in(*taken, program.in_bytes())) return std::nullopt;
  const int64_t in =
      taken == nullptr ? program.in_bytes() : taken->stored_rows * taken->stored_row_bytes;
  Composition made;
  if (taken != nullptr) add_taken(*taken, made.inner);
  for (const Step& step : program.steps()) {
    if (step_out_bytes(step) > kMostBytes || !made.add(step)) return std::nullopt;
  }
  std::vector<uint32_t> map;
  int64_t inner_bytes = out;
  int64_t most_span = GATHER_MOST_SPAN;
  GatherPlan plan(kGatherHeadWords);
  if (made.map != nullptr) {
    map = map_words(*made.map);
    if (map.empty()) return std::nullopt;
    inner_bytes = made.map_count * made.map->in_bytes;
    most_span = std::min(most_span, 2 * made.map->in_bytes);
    plan[kGatherMap] = made.map->moves_bits ? 2 : 1;
    plan[kGatherMapIn] = word(made.map->in_bytes);
    plan[kGatherMapOut] = word(made.map->out_bytes);
    plan[kGatherMapWords] = word(std::ssize(map));
  }
  made.inner.keep(2 * inner_bytes);
  made.outer.keep(2 * out);  // the last units are whole
  const bool run = made.map == nullptr && made.inner.together == kMostTogether;
  plan[kGatherOutBytes] = word(out);
  plan[kGatherInBytes] = word(in);
  plan[kGatherUnit] = word(run ? kMostTogether : std::min(made.inner.together, most_span));
  plan[kGatherOuterUnit] = word(std::min<int64_t>(made.outer.together, GATHER_MOST_SPAN));
  const auto append = [&](GatherHead at, const std::vector<uint32_t>& words) {
    plan[at] = word(std::ssize(plan));
    plan.insert(plan.end(), words.begin(), words.end());
  };
  append(kGatherInnerAt, words_with_span(made.inner, 2 * inner_bytes, most_span));
  append(kGatherOuterAt, made.outer.words());
  append(kGatherMapAt, map);
  add_quick_way(made.inner, plan);
  return is_sound(plan, in, out) ? std::optional(plan) : std::nullopt;
}

bool is_sound(std::span<const uint32_t> plan, int64_t in_bytes, int64_t out_bytes) {
  if (plan.size() < kGatherHeadWords || in_bytes > kMostBytes || out_bytes > kMostBytes) {
    return false;
  }
  if (plan[kGatherOutBytes] != out_bytes || plan[kGatherInBytes] != in_bytes) return false;
  if (!is_unit(plan[kGatherUnit]) || !is_unit(plan[kGatherOuterUnit])) return false;
  if (plan[kGatherUnit] == 32 && out_bytes % 16 != 0) return false;
  return chain_ends(plan, plan[kGatherInnerAt]) && operations_end(plan, plan[kGatherOuterAt]) &&
         (plan[kGatherMap] == 0 || map_lies_in(plan));
}

}  // namespace mxfp4
