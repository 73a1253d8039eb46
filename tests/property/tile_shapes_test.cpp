// Every layout's weights run by instructions of their own, not by those that look at run time.
#include "lib/kernels/tile_shapes.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/core/error.hpp"
#include "lib/kernels/permute.hpp"
#include "lib/layouts/layout.hpp"
#include "lib/revisions/revisions.hpp"
#include "tests/property/target_space.hpp"

namespace mxfp4::test {
namespace {

// A row's outputs at sizes that it rounds up, with the first target that takes it; none when no
// target does.
std::vector<Output> outputs_of(const RuleSet& rules, const LayoutRow& row, const LayerDims& sizes) {
  for (Family family : {Family::kGptOss, Family::kGeneric}) {
    if (row.family && *row.family != family) continue;
    for (const Target& target : targets_of(row.backend, family, true)) {
      try {
        if (find_layout_row(rules, target) != &row) continue;
        LayoutInput input;
        input.target = target;
        input.loaded.dims = round_up_sizes(rules, target, sizes);
        input.loaded.bias = DType::kBF16;
        input.loaded.input_scales = true;
        return row.layout->outputs(input);
      } catch (const Error&) {  // a fact that this row does not need is missing
      }
    }
  }
  return {};
}

std::optional<kernels::TileShape> shape_of(const Permute& step, bool invert) {
  const auto nest = kernels::permutation_nest(step.dims, step.order, invert);
  const auto plan = kernels::tile_plan(nest, unit_bits(step.unit));
  if (!plan) return std::nullopt;
  return kernels::shape_of(*plan);
}

// As a row of the table.
std::string row_of(const kernels::TileShape& s) {
  return fmt::format("{{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}},", s.exchanges,
                     s.registers, s.loads_whole, s.stores_whole, s.stores_run, s.first_order,
                     s.swap, s.lead_exchange, s.nibble_exchange, s.first_exchange, s.last_order,
                     s.block_exchange);
}

// The shapes of all large permutations, with who takes them.
std::map<std::string, std::string> shapes_of_layouts() {
  std::map<std::string, std::string> shapes;
  const RuleSet& rules = revision_by_name("vllm-2026-05-18");
  for (const LayerDims& sizes : {LayerDims{1, 2880, 2880}, LayerDims{1, 4096, 3072}}) {
    for (const LayoutRow& row : rules.layouts) {
      if (row.layout == nullptr) continue;
      for (const Output& output : outputs_of(rules, row, sizes)) {
        for (const Step& step : output.program.steps()) {
          const auto* permute = std::get_if<Permute>(&step);
          if (permute == nullptr || step_in_bytes(step) < (1 << 20)) continue;
          for (bool invert : {false, true}) {
            if (const auto shape = shape_of(*permute, invert)) {
              shapes[row_of(*shape)] =
                  fmt::format("{} {}{}", row.layout->id, output.name, invert ? ", back" : "");
            }
          }
        }
      }
    }
  }
  return shapes;
}

TEST(TileShapes, AreThoseOfTheLayouts) {
  const auto shapes = shapes_of_layouts();
  std::set<std::string> known;
  for (const kernels::TileShape& shape : kernels::kKnownTileShapes) known.insert(row_of(shape));
  for (const auto& [row, user] : shapes) EXPECT_TRUE(known.contains(row)) << row << " of " << user;
  for (const std::string& row : known) EXPECT_TRUE(shapes.contains(row)) << row << ": no layout's";
}

}  // namespace
}  // namespace mxfp4::test
