// The table of naming styles: names taken apart and put together.
#include "lib/load/style_rows.hpp"

#include <gtest/gtest.h>

#include "lib/core/error.hpp"

namespace mxfp4 {
namespace {

const StyleRow& row_of(Style style, Loader loader) {
  for (const StyleRow& row : style_rows()) {
    if (row.style == style && row.loader == loader) return row;
  }
  throw Error::internal("no such row");
}

TEST(StyleRows, TakeNamesApartAndPutThemTogether) {
  const StyleRow& row = row_of(Style::kQuark, Loader::kGeneric);
  const std::string text = "language_model.model.layers.12.block_sparse_moe.experts.7.w3.weight";
  const auto name = parse_expert_name(row, text);
  ASSERT_TRUE(name);
  EXPECT_EQ(name->module, "language_model.model.layers.12.block_sparse_moe.experts");
  EXPECT_EQ(name->layer, 12);
  EXPECT_EQ(name->expert, 7);
  EXPECT_EQ(name->projection, Projection::kUp);
  EXPECT_EQ(name->field, Field::kCodes);
  EXPECT_FALSE(name->draft);
  EXPECT_EQ(expert_tensor_name(row, name->module, 7, name->word, name->field), text);
}

TEST(StyleRows, LeaveOtherNamesAlone) {
  const StyleRow& row = row_of(Style::kQuark, Loader::kGeneric);
  for (const char* name : {
           "model.layers.0.mlp.shared_experts.gate_proj.weight",
           "model.layers.0.mlp.gate_proj.weight",
           "model.layers.0.mlp.experts.gate_proj.weight",
           "model.layers.0.mlp.experts.x.gate_proj.weight",
           "model.layers.0.mlp.experts.-1.gate_proj.weight",
           "model.layers.0.mlp.experts.1.gate_proj.weight_zero_point",
           "model.layers.0.mlp.experts.1.gate_proj",
           "model.layers.0.mlp.experts.99999999999999999999.gate_proj.weight",
           "model.layers.99999999999999999999.mlp.experts.1.gate_proj.weight",
           "model.mlp.experts.1.gate_proj.weight",
           "experts.",
           ".experts.",
           "",
           "model.layers.0.mlp.experts.1.",
       }) {
    EXPECT_FALSE(parse_expert_name(row, name)) << name;
  }
}

TEST(StyleRows, PredictionModulesAreDrafts) {
  const StyleRow& row = row_of(Style::kDeepseekV4, Loader::kGeneric);
  const auto name = parse_expert_name(row, "mtp.1.ffn.experts.3.w2.scale");
  ASSERT_TRUE(name);
  EXPECT_TRUE(name->draft);
  EXPECT_EQ(name->layer, 1);
}

}  // namespace
}  // namespace mxfp4
