// The tensors that SGLang's own code left of drawn layers, against the loader, its padding and the
// layout of the program together (testdata/engines/sglang_layouts.json,
// tests/engines/sglang/layouts.py). Sizes that nothing divides show which byte pads which tail.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "formats/config/config_json.hpp"
#include "formats/decision/decide.hpp"
#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"
#include "lib/layouts/knobs.hpp"
#include "lib/revisions/revisions.hpp"
#include "tests/golden/digest_of.hpp"
#include "tests/golden/drawn_inputs.hpp"
#include "tests/testdata.hpp"

namespace mxfp4::test {
namespace {

using Json = nlohmann::json;

ModelConfig config_of_class(const std::string& name, const LayerDims& dims) {
  Json config{{"num_hidden_layers", 1}, {"hidden_size", dims.hidden_size}};
  if (name == "oss") {
    config["model_type"] = "gpt_oss";
    config["num_local_experts"] = dims.num_experts;
    config["intermediate_size"] = dims.intermediate_size;
    config["quantization_config"] = {{"quant_method", "mxfp4"}};
  } else {
    config["model_type"] = "deepseek_v4";
    config["n_routed_experts"] = dims.num_experts;
    config["moe_intermediate_size"] = dims.intermediate_size;
    config["quantization_config"] = {{"quant_method", "fp8"}};
  }
  return parse_model_config(config.dump(), "config.json");
}

// The method class that serves the row. compressed-tensors' own configs say more than is
// needed here.
const CallerRow& caller_of_class(const RuleSet& rules, const std::string& name,
                                 const ModelConfig& config) {
  if (name != "ct") return *find_caller(rules, config);
  for (const CallerRow& row : rules.callers) {
    if (row.text.starts_with("compressed-tensors mxfp4-pack-quantized")) return row;
  }
  throw Error::internal("no class for compressed-tensors");
}

// A layer as SGLang's loader leaves it on the only rank.
struct SglangLayer {
  ModelLayers model;
  RankSlice slice;
  LoadedLayer loaded;
};

SglangLayer load_layer(const SliceRequest& request, const CallerRow& caller,
                       const LoadedLayer& drawn) {
  SglangLayer out;
  const bool gpt_oss = caller.family == Family::kGptOss;
  out.model.loader = gpt_oss ? Loader::kGptOssStacked : Loader::kGeneric;
  out.model.order = gpt_oss ? W13Order::kInterleaved : W13Order::kHalves;
  out.model.family = caller.family;
  ExpertLayer& layer = out.model.layers.emplace_back();
  layer.dims = drawn.spec.dims;
  for (const auto& [slot, tensor] : drawn.slots) {
    SlotSource& source = layer.slots[static_cast<size_t>(slot)];
    source.dtype = tensor.spec.dtype;
    source.experts = {{Extent{}}};
  }
  out.slice = cut_ranks(out.model, layer.dims, request).front();
  out.loaded.spec = drawn.spec;
  out.loaded.spec.dims = out.slice.padded;
  for (const auto& [slot, tensor] : drawn.slots) {
    const Assembly assembly = make_assembly(out.model, layer, slot, out.slice);
    Tensor& made = out.loaded.slots[slot];
    made.spec = out.loaded.spec.tensor(slot);
    made.bytes.resize(static_cast<size_t>(made.spec.bytes()));
    const auto from = static_cast<size_t>(assembly.stored.bytes());
    const auto to = static_cast<size_t>(assembly.loaded.bytes());
    for (size_t e = 0; e < static_cast<size_t>(layer.dims.num_experts); ++e) {
      assembly.forward(ConstBytes(tensor.bytes).subspan(e * from, from),
                       MutableBytes(made.bytes).subspan(e * to, to));
    }
  }
  return out;
}

struct SglangRow {
  const Json& stated;
  const RuleSet& rules;
  LayerDims dims;
  ModelConfig config;
  const CallerRow& caller;
  Deployment deployment;
  Target target;
};

SglangRow read_row(const Json& stated, const std::string& release) {
  const RuleSet& rules = revision_by_name(release);
  const LayerDims dims{stated.at("E").get<int64_t>(), stated.at("H").get<int64_t>(),
                       stated.at("I").get<int64_t>()};
  const auto name = stated.at("class").get<std::string>();
  ModelConfig config = config_of_class(name, dims);
  const CallerRow& caller = caller_of_class(rules, name, config);
  Deployment deployment;
  deployment.arch = stated.at("arch").get<std::string>();
  deployment.platform = deployment.arch.starts_with("gfx") ? Platform::kRocm : Platform::kCuda;
  if (stated.contains("env")) {
    deployment.env = stated.at("env").get<std::map<std::string, std::string>>();
  }
  deployment.hidden_size = dims.hidden_size;
  deployment.intermediate_size = dims.intermediate_size;
  deployment.activation =
      stated.value("activation", caller.family == Family::kGptOss ? "swigluoai" : "silu");
  Decision decision;
  decision.backend = backend_from_name(stated.at("backend").get<std::string>());
  const Target target = make_target(deployment, decision, caller.family);
  return {stated, rules, dims, std::move(config), caller, std::move(deployment), target};
}

LoadedLayer drawn_of(const SglangRow& row) {
  LoadedSpec spec;
  spec.dims = row.dims;
  if (row.stated.at("bias").get<bool>()) spec.bias = DType::kBF16;
  return drawn_layer(spec, {row.stated.at("seed").get<uint64_t>(), "typical", "uniform"});
}

// Whether the program refuses the sizes, as SGLang's own code did.
bool refuses(const SglangRow& row, const Layout& layout) {
  Decision decision;
  decision.backend = row.target.backend;
  const ModelFacts facts{.caller = &row.caller};
  for (const LoadNote& note : load_notes(row.rules, row.deployment, facts, decision)) {
    if (note.stops) return true;
  }
  try {
    const LoadedLayer drawn = drawn_of(row);
    const SglangLayer layer = load_layer({.rules = row.rules,
                                          .deployment = row.deployment,
                                          .target = row.target,
                                          .config = &row.config,
                                          .caller = &row.caller},
                                         row.caller, drawn);
    (void)make_outputs(layout, {layer.loaded.spec, layout_parameters(row.target)});
  } catch (const Error&) {
    return true;
  }
  return false;
}

void expect_bytes(const SglangRow& row, const Layout& layout) {
  const SglangLayer layer = load_layer({.rules = row.rules,
                                        .deployment = row.deployment,
                                        .target = row.target,
                                        .config = &row.config,
                                        .caller = &row.caller},
                                       row.caller, drawn_of(row));
  const Tensors written = run_layout(layout, {layer.loaded.spec, layout_parameters(row.target)},
                                     layer.loaded, std::byte{0xA5});
  const Json& out = row.stated.at("out");
  EXPECT_EQ(written.size(), out.size());
  for (const auto& [name, want] : out.items()) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(written.contains(name));
    const Tensor& got = written.at(name);
    EXPECT_EQ(got.spec.shape, Shape(want.at(1).get<std::vector<int64_t>>()))
        << got.spec.shape.to_string();
    EXPECT_EQ(digest_of(got.bytes), want.at(2).get<std::string>());
  }
}

TEST(SglangLayouts, GiveTheBytesThatItsOwnCodeMade) {
  const Json stored = Json::parse(std::ifstream(testdata("engines/sglang_layouts.json")));
  std::set<std::string> compared;
  for (const Json& stated : stored.at("executed")) {
    for (const auto& release : stated.at("releases")) {
      const SglangRow row = read_row(stated, release.get<std::string>());
      SCOPED_TRACE(stated.at("row").get<std::string>() + ", " + release.get<std::string>() +
                   ", seed " + stated.at("seed").dump());
      const LayoutRow* found = find_layout_row(row.rules, row.target);
      ASSERT_NE(found, nullptr);
      ASSERT_NE(found->layout, nullptr) << found->refusal;
      if (stated.contains("error")) {
        EXPECT_TRUE(refuses(row, *found->layout)) << stated.at("error");
      } else {
        expect_bytes(row, *found->layout);
        compared.insert(stated.at("row").get<std::string>() + release.get<std::string>());
      }
    }
  }
  EXPECT_GE(compared.size(), 30U);
}

// Shapes and digests by name, without types: SGLang keeps some bytes as another type of one byte.
std::map<std::string, Json> bytes_in(const Json& row) {
  std::map<std::string, Json> out;
  for (const auto& [name, made] : row.at("out").items()) out[name] = {made.at(1), made.at(2)};
  return out;
}

// Whether vLLM's own converter got the same layer, without a variant of its own.
bool is_same_question(const Json& vllm, const Json& sglang) {
  for (const char* key : {"backend", "family", "seed", "E", "H", "I", "bias"}) {
    if (vllm.at(key) != sglang.at(key)) return false;
  }
  return vllm.contains("out") && !vllm.contains("env") && !vllm.contains("tp_size");
}

// One blob serves both engines: the converters of both wheels made the same bytes of the same layer
// of DeepSeek-V4 where nothing is padded, and the rules give both the same layout.
TEST(SglangLayouts, AreThoseOfVllmForDeepseekV4WhereNothingIsPadded) {
  const Json ours = Json::parse(std::ifstream(testdata("engines/sglang_layouts.json")));
  const Json theirs = Json::parse(std::ifstream(testdata("engines/layouts.json")));
  const std::string vllm(newest_release(Engine::kVllm).version());
  const std::string sglang(newest_release(Engine::kSglang).name);
  std::set<std::string> same;
  for (const Json& row : ours.at("executed")) {
    const auto releases = row.at("releases").get<std::set<std::string>>();
    if (!row.at("row").get<std::string>().starts_with("fp4_experts/") || !row.contains("out") ||
        row.contains("env") || !releases.contains(sglang)) {
      continue;
    }
    for (const Json& other : theirs.at("executed")) {
      if (!is_same_question(other, row)) continue;
      if (!other.at("releases").get<std::set<std::string>>().contains(vllm)) continue;
      if (bytes_in(other) != bytes_in(row)) continue;
      const SglangRow there = read_row(row, sglang);
      const LayoutRow* layout = find_layout_row(there.rules, there.target);
      const LayoutRow* here = find_layout_row(default_revision(), there.target);
      ASSERT_NE(layout, nullptr);
      ASSERT_NE(here, nullptr);
      EXPECT_EQ(layout->layout, here->layout) << row.at("row");
      same.insert(row.at("row").get<std::string>());
    }
  }
  for (const char* row : {"sm90/flashinfer_mxfp4", "sm100/flashinfer_mxfp4",
                          "sm120/flashinfer_mxfp4", "sm90/marlin", "sm120/marlin", "gfx950/auto"}) {
    EXPECT_TRUE(same.contains(std::string("fp4_experts/") + row)) << row;
  }
}

}  // namespace
}  // namespace mxfp4::test
