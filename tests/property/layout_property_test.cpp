// Laws that hold for every layout of every revision, on drawn inputs: all output bytes are written,
// the inverse gives the inputs back, an expert's bytes depend only on that expert (granules of
// one), and pure permutations neither lose nor invent a unit. One test a row of a revision's layout
// table.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <set>
#include <tuple>

#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"
#include "lib/layouts/knobs.hpp"
#include "lib/revisions/revisions.hpp"
#include "tests/golden/drawn_inputs.hpp"
#include "tests/property/target_space.hpp"

namespace mxfp4::test {
namespace {

struct RowCase {
  const RuleSet* rules;
  const LayoutRow* row;
  std::string name;
};

void PrintTo(const RowCase& row, std::ostream* out) { *out << row.name; }

// Each row once, from the oldest revision that has it.
std::vector<RowCase> layout_rows() {
  std::vector<RowCase> cases;
  std::set<std::tuple<Backend, std::optional<Family>, std::string_view, const Layout*>> seen;
  for (const RuleSet* rules : all_revisions()) {
    for (const LayoutRow& row : rules->layouts) {
      if (row.layout == nullptr) continue;
      if (!seen.insert({row.backend, row.family, row.when.text, row.layout}).second) continue;
      std::string name = std::string(rules->name) + "_" + std::string(backend_name(row.backend)) +
                         "_" + std::to_string(&row - rules->layouts.data());
      std::ranges::replace_if(
          name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
      cases.push_back({rules, &row, name});
    }
  }
  return cases;
}

// Targets that find this very row.
std::vector<Target> targets_of_row(const RowCase& row_case) {
  std::vector<Target> hits;
  for (Family family : {Family::kGptOss, Family::kGeneric}) {
    bool first = true;
    for (bool knobs : {true, false}) {
      for (const Target& target : targets_of(row_case.row->backend, family, knobs)) {
        if (row_of(*row_case.rules, target) != row_case.row) continue;
        // Knobs on the first machine that fits, the others as they are.
        if (knobs && !first && target.arch != hits.back().arch) break;
        if (!knobs && target.arch == hits.front().arch) continue;
        hits.push_back(target);
        first = false;
      }
    }
  }
  return hits;
}

std::vector<LoadedSpec> specs() {
  std::vector<LoadedSpec> result;
  for (const LayerDims dims : {LayerDims{2, 64, 64}, LayerDims{3, 96, 64}, LayerDims{3, 128, 256},
                               LayerDims{2, 512, 256}}) {
    result.push_back({dims, DType::kBF16, false});
    result.push_back({dims, std::nullopt, false});
    result.push_back({dims, DType::kF32, false});
    result.push_back({dims, DType::kBF16, true});
  }
  return result;
}

bool is_pure_permutation(const Output& output) {
  return !output.combination && std::ranges::all_of(output.program.steps(), [](const Step& s) {
    return std::holds_alternative<Permute>(s) || std::holds_alternative<GatherRows>(s);
  });
}

// How often each nibble value occurs.
std::array<int64_t, 16> nibble_counts(const std::vector<std::byte>& bytes) {
  std::array<int64_t, 16> counts{};
  for (std::byte b : bytes) {
    ++counts[std::to_integer<size_t>(b) & 15];
    ++counts[std::to_integer<size_t>(b) >> 4];
  }
  return counts;
}

void expect_units_kept(const Output& output, const LoadedLayer& layer, const Tensors& written) {
  if (!is_pure_permutation(output)) return;
  EXPECT_EQ(nibble_counts(written.at(output.name).bytes),
            nibble_counts(layer.slots.at(output.slot).bytes))
      << output.name;
}

// Each expert packed as a layer of its own gives the same bytes.
void expect_experts_independent(const Layout& layout, const LayoutInput& input,
                                const LoadedLayer& layer, const Tensors& written) {
  for (int64_t e = 0; e < layer.spec.dims.num_experts; ++e) {
    const LoadedLayer one = expert_of(layer, e);
    const Tensors alone = run_layout(layout, {one.spec, input.parameters}, one, std::byte{0});
    for (const Output& output : make_outputs(layout, input)) {
      if (output.experts_per_granule != 1) continue;
      const std::vector<std::byte>& whole = written.at(output.name).bytes;
      const std::vector<std::byte>& part = alone.at(output.name).bytes;
      const auto begin = whole.begin() + e * static_cast<ptrdiff_t>(part.size());
      EXPECT_TRUE(std::equal(part.begin(), part.end(), begin)) << output.name << ", expert " << e;
    }
  }
}

// False when the layout refuses these sizes or this target.
bool check_laws(const Layout& layout, const LayoutInput& input, uint64_t seed) {
  const LoadedLayer layer = drawn_layer(input.loaded, {.seed = seed});
  Tensors written;
  try {
    written = run_layout(layout, input, layer, std::byte{0xA5});
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported) << error.what();
    return false;
  }
  const Tensors again = run_layout(layout, input, layer, std::byte{0x5A});
  EXPECT_TRUE(written == again) << "a byte is not written";
  const std::vector<Output> outputs = make_outputs(layout, input);
  for (const Output& output : outputs) expect_units_kept(output, layer, written);
  expect_restored(outputs, layer, written);
  expect_experts_independent(layout, input, layer, written);
  return true;
}

class LayoutProperty : public testing::TestWithParam<RowCase> {};

TEST_P(LayoutProperty, Holds) {
  const Layout& layout = *GetParam().row->layout;
  const std::vector<Target> targets = targets_of_row(GetParam());
  ASSERT_FALSE(targets.empty()) << "no known target reaches this row";
  int accepted = 0;
  for (const Target& target : targets) {
    int accepted_here = 0;
    for (const LoadedSpec& spec : specs()) {
      // All sizes on the first target, one on each other.
      if (&target != &targets.front() && accepted_here > 0) break;
      SCOPED_TRACE(testing::Message()
                   << family_name(target.family) << " " << target.arch << " E "
                   << spec.dims.num_experts << " H " << spec.dims.hidden_size << " I "
                   << spec.dims.intermediate_size << (spec.bias ? " bias" : "")
                   << (spec.input_scales ? " input scales" : ""));
      accepted_here += check_laws(layout, {spec, layout_parameters(target)}, 7) ? 1 : 0;
      if (HasFailure()) return;
    }
    accepted += accepted_here;
  }
  EXPECT_GT(accepted, 0) << "every size was refused";
}

INSTANTIATE_TEST_SUITE_P(Rows, LayoutProperty, testing::ValuesIn(layout_rows()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace mxfp4::test
