#include "lib/steps/schedule_parts.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <variant>

#include "lib/steps/lower.hpp"

namespace mxfp4 {
namespace {

// The least bytes of a part's columns: the copy engine moves rows, and short ones slowly.
constexpr int64_t kLeastWidth = 512;

// Consecutive bytes of the whole output.
struct OutputRange {
  int64_t begin = 0;
  int64_t bytes = 0;
};

// The least that runs by itself: some operations that lead to one range of the output, or one row
// of an operation that moves rows from the input to the output.
struct Atom {
  size_t first = 0;  // of Schedule::operations
  size_t count = 0;
  OutputRange out;
  std::optional<RowMoves> row;
};

// Ranges of the output that grow together.
class Ranges {
 public:
  void add(const OutputRange& added) {
    OutputRange range = added;
    auto next = by_begin_.lower_bound(range.begin);
    if (next != by_begin_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == range.begin) {
        range = {before->first, before->second + range.bytes};
        by_begin_.erase(before);
      }
    }
    if (next != by_begin_.end() && range.begin + range.bytes == next->first) {
      range.bytes += next->second;
      by_begin_.erase(next);
    }
    by_begin_[range.begin] = range.bytes;
    bytes_ += added.bytes;
  }

  [[nodiscard]] int64_t bytes() const { return bytes_; }
  // Whether they are a block of one or two rows.
  [[nodiscard]] bool are_block() const {
    return by_begin_.size() == 1 ||
           (by_begin_.size() == 2 && by_begin_.begin()->second == by_begin_.rbegin()->second);
  }
  // If are_block().
  [[nodiscard]] OutputBlock block() const {
    const auto& [begin, bytes] = *by_begin_.begin();
    return {begin, bytes, static_cast<int64_t>(by_begin_.size()),
            by_begin_.rbegin()->first - begin};
  }

 private:
  std::map<int64_t, int64_t> by_begin_;
  int64_t bytes_ = 0;
};

// The rows of an operation that moves them from the input to the output.
void add_rows(const Schedule& whole, size_t index, std::vector<Atom>& atoms) {
  const Operation& op = whole.operations[index];
  for (const RowMoves& moves : std::span(whole.moves).subspan(op.moves.first, op.moves.count)) {
    for (int64_t i = 0; i < moves.count; ++i) {
      RowMoves row = moves;
      row.count = 1;
      row.from = op.from.offset + moves.from + i * moves.from_step;
      row.to = op.to.offset + moves.to + i * moves.to_step;
      atoms.push_back({index, 1, {row.to, row.bytes + row.fill}, row});
    }
  }
}

// Empty where an operation reads what an operation of another atom has left.
std::vector<Atom> atoms_of(const Schedule& whole) {
  std::vector<Atom> atoms;
  size_t first = 0;
  for (size_t i = 0; i < whole.operations.size(); ++i) {
    const Operation& op = whole.operations[i];
    if (op.to.place == Place::kFirstBetween || op.to.place == Place::kSecondBetween) return {};
    if (op.to.place != Place::kOutput) continue;
    if (op.kernel) {
      atoms.push_back({first, i + 1 - first, {op.to.offset, op.out_bytes}, {}});
    } else if (op.from.place == Place::kInput && first == i) {
      add_rows(whole, i, atoms);
    } else {
      return {};
    }
    first = i + 1;
  }
  return atoms;
}

// Whether the atoms write each byte of the output once. Kernels of strips may write with steps
// between what they write: then their ranges overlap.
bool cover_output(std::vector<Atom> atoms, int64_t bytes) {
  std::ranges::sort(atoms, {}, [](const Atom& atom) { return atom.out.begin; });
  int64_t at = 0;
  for (const Atom& atom : atoms) {
    if (atom.out.begin != at) return false;
    at += atom.out.bytes;
  }
  return at == bytes;
}

// Adds atoms to a part.
class PartBuilder {
 public:
  PartBuilder(const Schedule& whole, const Ranges& ranges) : whole_(whole) {
    part_.out = ranges.block();
    Schedule& schedule = part_.schedule;
    schedule.in_bytes = whole.in_bytes;
    schedule.out_bytes = ranges.bytes();
    schedule.strip_bytes = whole.strip_bytes;
    schedule.kernels = whole.kernels;
  }

  void add(const Atom& atom) {
    if (atom.row) return add_row(atom);
    for (size_t i = atom.first; i < atom.first + atom.count; ++i) {
      Operation op = whole_.operations[i];
      op.streaming = false;
      op.next.reset();
      if (op.to.place == Place::kOutput) op.to.offset = place_of(op.to.offset);
      if (!op.kernel) {
        const auto moves = std::span(whole_.moves).subspan(op.moves.first, op.moves.count);
        op.moves.first = part_.schedule.moves.size();
        part_.schedule.moves.insert(part_.schedule.moves.end(), moves.begin(), moves.end());
      }
      part_.schedule.operations.push_back(op);
    }
  }

  SchedulePart take() { return std::move(part_); }

 private:
  // Where the part writes what goes to byte `offset` of the whole output.
  [[nodiscard]] int64_t place_of(int64_t offset) const {
    const int64_t behind = offset - part_.out.begin;
    return behind < part_.out.width ? behind : part_.out.width + behind - part_.out.pitch;
  }

  void add_row(const Atom& atom) {
    Schedule& schedule = part_.schedule;
    RowMoves row = *atom.row;
    row.to = place_of(row.to);
    if (rows_of_ != atom.first) {
      Operation op = whole_.operations[atom.first];
      op.from.offset = op.to.offset = 0;
      op.moves = {schedule.moves.size(), 0};
      op.streaming = false;
      schedule.operations.push_back(op);
      rows_of_ = atom.first;
    }
    size_t& count = schedule.operations.back().moves.count;
    if (count > 0 && continues(schedule.moves.back(), row)) return;
    schedule.moves.push_back(row);
    ++count;
  }

  // Whether `row` is the next one of `moves`, which then has it.
  static bool continues(RowMoves& moves, const RowMoves& row) {
    if (moves.bytes != row.bytes || moves.fill != row.fill) return false;
    const int64_t from_step = row.from - (moves.from + (moves.count - 1) * moves.from_step);
    const int64_t to_step = row.to - (moves.to + (moves.count - 1) * moves.to_step);
    if (moves.count > 1 && (from_step != moves.from_step || to_step != moves.to_step)) return false;
    moves.from_step = from_step;
    moves.to_step = to_step;
    ++moves.count;
    return true;
  }

  const Schedule& whole_;
  SchedulePart part_;
  std::optional<size_t> rows_of_;  // the operation whose rows are being added
};

SchedulePart part_of_atoms(const Schedule& whole, std::span<const Atom> atoms,
                           const Ranges& ranges) {
  PartBuilder builder(whole, ranges);
  for (const Atom& atom : atoms) builder.add(atom);
  return builder.take();
}

// Consecutive atoms are a part, which ends where its ranges are a block.
std::vector<SchedulePart> parts_of_atoms(const Schedule& whole, std::span<const Atom> atoms,
                                         int64_t most_bytes) {
  std::vector<SchedulePart> parts;
  while (!atoms.empty()) {
    Ranges ranges;
    Ranges block;      // the last ones that were a block
    size_t count = 0;  // its atoms
    for (size_t i = 0; i < atoms.size(); ++i) {
      if (count > 0 && ranges.bytes() + atoms[i].out.bytes > most_bytes) break;
      ranges.add(atoms[i].out);
      if (!ranges.are_block()) continue;
      count = i + 1;
      block = ranges;
    }
    if (count == 0) return {};
    parts.push_back(part_of_atoms(whole, atoms.first(count), block));
    atoms = atoms.subspan(count);
  }
  return parts;
}

// Lets a part's operations, which began at the begin of the input, begin at `offset`.
void move_input(Schedule& schedule, int64_t offset) {
  for (Operation& op : schedule.operations) {
    op.streaming = false;
    op.next.reset();
    if (op.from.place == Place::kInput) op.from.offset += offset;
  }
}

// A schedule of bands: some bands are a part.
std::vector<SchedulePart> parts_of_bands(const Schedule& whole, int64_t most_bytes) {
  const int64_t in_band = whole.in_bytes / whole.bands;
  const int64_t out_band = whole.out_bytes / whole.bands;
  const int64_t at_once = std::max<int64_t>(1, most_bytes / out_band);
  std::vector<SchedulePart> parts;
  for (int64_t first = 0; first < whole.bands; first += at_once) {
    const int64_t count = std::min(at_once, whole.bands - first);
    SchedulePart& part =
        parts.emplace_back(SchedulePart{whole, {first * out_band, count * out_band}});
    part.schedule.bands = count;
    part.schedule.in_bytes = count * in_band;
    part.schedule.out_bytes = count * out_band;
    move_input(part.schedule, first * in_band);
  }
  return parts;
}

// One permutation whose first input axis lies within rows of the output: some of the axis's entries
// are a part, and columns of the output.
std::vector<SchedulePart> parts_of_columns(const Permute& step, const Schedule& whole,
                                           int64_t most_bytes) {
  const int64_t entries = step.dims.front();
  int64_t rows = 1;
  for (const int axis : step.order) {
    if (axis == 0) break;
    rows *= step.dims[static_cast<size_t>(axis)];
  }
  const int64_t in_entry = whole.in_bytes / entries;
  const int64_t width = whole.out_bytes / rows / entries;
  const int64_t at_once = most_bytes / (rows * std::max<int64_t>(1, width));
  if (width < kLeastWidth || at_once == 0) return {};
  std::vector<SchedulePart> parts;
  for (int64_t first = 0; first < entries; first += at_once) {
    Permute some = step;
    some.dims.front() = std::min(at_once, entries - first);
    const int64_t count = some.dims.front();
    SchedulePart& part =
        parts.emplace_back(SchedulePart{lower({some}, count * in_entry, Direction::kForward),
                                        {first * width, count * width, rows, entries * width}});
    move_input(part.schedule, first * in_entry);
  }
  return parts;
}

std::vector<SchedulePart> parts_of(const std::vector<Step>& steps, const Schedule& whole,
                                   int64_t most_bytes) {
  if (whole.bands > 1) return parts_of_bands(whole, most_bytes);
  const std::vector<Atom> atoms = atoms_of(whole);
  if (cover_output(atoms, whole.out_bytes)) return parts_of_atoms(whole, atoms, most_bytes);
  const auto* permute = steps.size() == 1 ? std::get_if<Permute>(&steps.front()) : nullptr;
  if (permute == nullptr) return {};
  return parts_of_columns(*permute, whole, most_bytes);
}

}  // namespace

std::vector<SchedulePart> cut_into_parts(const std::vector<Step>& steps, const Schedule& whole,
                                         int64_t most_bytes) {
  if (whole.out_bytes <= most_bytes) return {};
  std::vector<SchedulePart> parts = parts_of(steps, whole, most_bytes);
  const auto fits = [&](const SchedulePart& part) { return part.bytes() <= most_bytes; };
  if (!std::ranges::all_of(parts, fits)) return {};
  return parts;
}

}  // namespace mxfp4