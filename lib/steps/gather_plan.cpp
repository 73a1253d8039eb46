#include "lib/steps/gather_plan.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

#include "lib/core/overloaded.hpp"
#include "lib/kernels/gather_source.h"
#include "lib/kernels/permute.hpp"
#include "lib/steps/gather_items.hpp"

namespace mxfp4 {
namespace {

struct Digit {
  int64_t extent;
  int64_t stride;
};

using Digits = std::vector<Digit>;

void append_digits(const std::vector<Digit>& digits, std::vector<uint32_t>& words) {
  words.push_back(word(std::ssize(digits)));
  for (const auto& [extent, stride] : digits) {
    words.insert(words.end(), {word(extent), magic_of(word(extent)), word(stride)});
  }
}

// Rows and columns of a matrix, the rest filled; a row that is not in it is kFilled. In nibbles.
struct MatrixRows {
  int64_t row;
  int64_t in_row;
  int64_t columns;
  int64_t first;  // column of the input
  std::byte fill;
  std::vector<int64_t> source;
};

// What is before the operation, nearer to the input, becomes a part of it, if it can.
bool take_in(const MatrixRows& before, MatrixRows& rows) {
  if (before.row != rows.in_row || before.fill != rows.fill) return false;
  for (int64_t& row : rows.source) {
    if (row != TakenRows::kFilled) row = before.source.at(static_cast<size_t>(row));
  }
  rows.columns = std::clamp<int64_t>(before.columns - rows.first, 0, rows.columns);
  rows.first += before.first;
  rows.in_row = before.in_row;
  return true;
}

bool changes_nothing(const MatrixRows& rows) {
  for (size_t i = 0; i < rows.source.size(); ++i) {
    if (rows.source[i] != static_cast<int64_t>(i)) return false;
  }
  return rows.first == 0 && rows.columns == rows.row && rows.in_row == rows.row;
}

// An operation of a chain: one of both.
struct ChainOperation {
  int64_t together;  // nibbles stay together, or a divisor of this number
  std::vector<uint32_t> words;
  Digits digits{};
  std::optional<MatrixRows> rows{};
};

// Operations from a chain's output back.
struct Chain {
  std::vector<ChainOperation> operations;  // in the order of the steps

  void add(MatrixRows rows) {
    if (!operations.empty() && operations.back().rows && take_in(*operations.back().rows, rows)) {
      operations.pop_back();
    }
    if (changes_nothing(rows)) return;
    std::vector<uint32_t> words = {kGatherRows,
                                   word(rows.row),
                                   magic_of(word(rows.row)),
                                   word(std::ssize(rows.source)),
                                   std::to_integer<uint32_t>(rows.fill),
                                   word(rows.in_row),
                                   word(rows.columns),
                                   word(rows.first)};
    std::ranges::transform(rows.source, std::back_inserter(words), word);
    const int64_t together =
        std::gcd(std::gcd(rows.row, rows.in_row), std::gcd(rows.columns, rows.first));
    operations.push_back(
        {.together = together, .words = std::move(words), .rows = std::move(rows)});
  }

  // Whether the last operation is digits.
  [[nodiscard]] bool ends_in_digits() const {
    return !operations.empty() && !operations.back().rows;
  }
  // Of `nibbles` nibbles, the largest power of two that the first `count` operations keep together.
  [[nodiscard]] int64_t together(int64_t nibbles, size_t count) const {
    nibbles = std::gcd(nibbles, kMostTogether);
    for (size_t i = 0; i < count; ++i) nibbles = std::gcd(nibbles, operations[i].together);
    return nibbles;
  }
  [[nodiscard]] std::vector<uint32_t> words() const {
    std::vector<uint32_t> all;
    for (size_t i = operations.size(); i-- > 0;) {
      all.insert(all.end(), operations[i].words.begin(), operations[i].words.end());
    }
    all.push_back(kGatherEnd);
    return all;
  }
};

// The words of a chain that makes `nibbles` nibbles, its first digits as a span of `most` nibbles
// at most: a place is looked up once for all of them.
std::vector<uint32_t> words_with_span(Chain chain, int64_t nibbles, int64_t most) {
  Digits digits = {{nibbles, 1}};
  if (chain.ends_in_digits()) {
    digits = chain.operations.back().digits;
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
  Digits digits;
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
  const bool run = digits[0].stride == 1;
  ChainOperation made = {.together = run ? digits[0].extent : 1, .words = {kGatherDigits}};
  for (size_t d = run ? 1 : 0; d < digits.size(); ++d) {
    made.together = std::gcd(made.together, digits[d].stride);
  }
  append_digits(digits, made.words);
  made.digits = std::move(digits);
  chain.operations.push_back(std::move(made));
}

MatrixRows rows_of(const GatherRows& step) {
  const int64_t row = 2 * step.row_bytes;
  return {row, row, row, 0, std::byte{0}, step.source};
}

MatrixRows rows_of(const PadMatrix& step) {
  std::vector<int64_t> source(static_cast<size_t>(step.out_rows), TakenRows::kFilled);
  std::iota(source.begin(), source.begin() + step.rows, 0);
  const int64_t row = 2 * step.row_bytes;
  return {2 * step.out_row_bytes, row, row, 0, step.fill, std::move(source)};
}

MatrixRows rows_of(const TakenRows& taken) {
  return {2 * taken.row_bytes, 2 * taken.stored_row_bytes,
          2 * taken.columns,   2 * taken.first,
          taken.fill,          taken.source};
}

// Whether the rows and columns lie in the stored matrix, and make the program's input.
bool lies_in(const TakenRows& taken, int64_t in_bytes) {
  const auto rows = std::ssize(taken.source);
  return rows * taken.row_bytes == in_bytes && taken.columns <= taken.row_bytes &&
         taken.first >= 0 && taken.columns >= 0 &&
         taken.first + taken.columns <= taken.stored_row_bytes &&
         taken.stored_rows * taken.stored_row_bytes <= kMostGatherBytes &&
         std::ranges::all_of(taken.source, [&](int64_t row) {
           return row >= TakenRows::kFilled && row < taken.stored_rows;
         });
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
      moved[(to - bit) % 32] |= uint32_t{1} << to;
    }
    for (const auto& [distance, bits] : moved) words.insert(words.end(), {distance, bits});
    return words;
  }
  for (uint32_t element = 0; element < uint32_t{1} << (8 * recoding.in_bytes); ++element) {
    words.push_back(value_of(element));
  }
  return words;
}

// The chains and the map of a program, step by step.
struct Composition {
  Chain inner;
  Chain outer;
  const Recoding* map = nullptr;
  int64_t map_count = 0;  // elements

  bool add(const Step& step) {
    Chain& chain = map != nullptr ? outer : inner;
    return std::visit(Overloaded{
                          [&](const Permute& s) { return add_permute(s, chain), true; },
                          [&](const GatherRows& s) { return chain.add(rows_of(s)), true; },
                          [&](const PadMatrix& s) { return chain.add(rows_of(s)), true; },
                          [&](const Recode& s) {
                            if (map != nullptr) return false;
                            map = s.recoding;
                            map_count = s.count;
                            return true;
                          },
                          [&](const Custom& s) {
                            return std::ranges::all_of(
                                       s.same_as,
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

}  // namespace

int64_t raw_bytes(const GatherPlan& plan) { return plan[kGatherInBytes]; }
int64_t made_bytes(const GatherPlan& plan) { return plan[kGatherOutBytes]; }
int64_t quick_bytes(const GatherPlan& plan) { return 4 * int64_t{plan[kGatherWords]}; }

std::optional<GatherPlan> gather_plan(const Program& program, const TakenRows* taken) {
  const int64_t out = program.out_bytes();
  if (out == 0 || program.in_bytes() > kMostGatherBytes || out > kMostGatherBytes)
    return std::nullopt;
  if (taken != nullptr && !lies_in(*taken, program.in_bytes())) return std::nullopt;
  const int64_t in =
      taken == nullptr ? program.in_bytes() : taken->stored_rows * taken->stored_row_bytes;
  Composition made;
  if (taken != nullptr) made.inner.add(rows_of(*taken));
  for (const Step& step : program.steps()) {
    if (step_out_bytes(step) > kMostGatherBytes || !made.add(step)) return std::nullopt;
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
  const size_t steps = made.inner.operations.size();
  const int64_t together = made.inner.together(2 * inner_bytes, steps);
  const bool run = made.map == nullptr && together == kMostTogether;
  plan[kGatherOutBytes] = word(out);
  plan[kGatherInBytes] = word(in);
  plan[kGatherUnit] = word(run ? kMostTogether : std::min(together, most_span));
  plan[kGatherOuterUnit] = word(std::min<int64_t>(
      made.outer.together(2 * out, made.outer.operations.size()), GATHER_MOST_SPAN));
  const auto append = [&](GatherHead at, const std::vector<uint32_t>& words) {
    plan[at] = word(std::ssize(plan));
    plan.insert(plan.end(), words.begin(), words.end());
  };
  append(kGatherInnerAt, words_with_span(made.inner, 2 * inner_bytes, most_span));
  append(kGatherOuterAt, made.outer.words());
  append(kGatherMapAt, map);
  const size_t behind = made.inner.ends_in_digits() ? steps - 1 : steps;
  add_quick_way(made.inner.together(2 * inner_bytes, behind), plan);
  return is_sound(plan, in, out) ? std::optional(plan) : std::nullopt;
}

}  // namespace mxfp4
