// Checkpoints to the loaded layout: every executed load of the reference's loaders, and every
// faulty checkpoint refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "formats/checkpoint/open_source.hpp"
#include "formats/checksum/sha256.hpp"
#include "formats/config/config_json.hpp"
#include "formats/source/source.hpp"
#include "lib/core/dtype.hpp"
#include "lib/load/find_layers.hpp"
#include "lib/load/slice.hpp"
#include "tests/testdata.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const fs::path kData = test::testdata("ingest");

nlohmann::json read_json(const fs::path& path) {
  std::ifstream in(path);
  return nlohmann::json::parse(in);
}

std::string hex(const Sha256Digest& digest) {
  std::string out;
  for (const std::byte b : digest) out += fmt::format("{:02x}", static_cast<unsigned>(b));
  return out;
}

struct Checkpoint {
  std::unique_ptr<Source> source;
  std::optional<ModelConfig> config;
  ModelLayers model;
};

Checkpoint open(const fs::path& folder) {
  Checkpoint out;
  out.source = open_source(folder);
  if (const auto text = out.source->config_json()) {
    out.config = parse_model_config(*text, "config.json");
  }
  std::vector<NamedTensor> tensors;
  for (const SourceTensor& t : out.source->tensors()) tensors.push_back({t.name, t.spec, t.file});
  FindOptions options;
  options.attributes = out.source->attributes();
  out.model = find_expert_layers(tensors, out.config ? &*out.config : nullptr, options);
  return out;
}

std::vector<std::byte> load(Source& source, const std::vector<Extent>& extents) {
  std::vector<std::byte> out;
  for (const Extent& extent : extents) {
    const size_t at = out.size();
    out.resize(at + static_cast<size_t>(extent.bytes));
    source.read(extent.tensor, extent.offset,
                MutableBytes(out).subspan(at, static_cast<size_t>(extent.bytes)));
  }
  return out;
}

// A loaded slot: every local expert's matrix, one behind the other.
struct LoadedTensor {
  TensorSpec spec;
  std::vector<std::byte> bytes;
};

LoadedTensor load_tensor(const Checkpoint& checkpoint, const ExpertLayer& layer, Slot slot,
                         const RankSlice& slice) {
  const Assembly assembly = make_assembly(checkpoint.model, layer, slot, slice);
  LoadedTensor out;
  out.spec = LoadedSpec{slice.padded, checkpoint.model.bias_dtype, true}.tensor(slot);
  for (const int64_t expert : slice.experts) {
    const auto in = load(*checkpoint.source, layer.slot(slot).experts[static_cast<size_t>(expert)]);
    const size_t at = out.bytes.size();
    out.bytes.resize(at + static_cast<size_t>(assembly.loaded.bytes()));
    assembly.forward(in, MutableBytes(out.bytes).subspan(at));
  }
  return out;
}

// dtype, shape and sha256, as cases.json has them.
nlohmann::json digest_of(const LoadedTensor& tensor) {
  const auto dims = tensor.spec.shape.dims();
  return {dtype_name(tensor.spec.dtype), std::vector<int64_t>(dims.begin(), dims.end()),
          hex(sha256(tensor.bytes))};
}

RankSlice slice_of(const nlohmann::json& item, const Checkpoint& checkpoint) {
  SliceOptions options;
  const int64_t tp = item["tp_size"];
  const int64_t ep = item["ep_size"];
  options.parallel.tp_size = std::max(tp, ep);
  options.parallel.enable_expert_parallel = ep > 1;
  options.placement = item["expert_placement_strategy"] == "linear" ? ExpertPlacement::kLinear
                                                                    : ExpertPlacement::kRoundRobin;
  options.n_group = checkpoint.config->n_group;
  // The rounding table is the revision's; here its result is an input.
  options.round_sizes = [&](LayerDims dims) {
    dims.hidden_size = item["padded_hidden"];
    dims.intermediate_size = item["padded_intermediate_per_rank"];
    return dims;
  };
  const auto slices = slice_ranks(checkpoint.model, checkpoint.model.layers.front().dims, options);
  return slices.at((ep > 1 ? item["ep_rank"] : item["tp_rank"]).get<size_t>());
}

void check_case(const nlohmann::json& item, const Checkpoint& checkpoint) {
  const RankSlice slice = slice_of(item, checkpoint);
  EXPECT_EQ(slice.experts, item["local_to_global"].get<std::vector<int64_t>>());
  EXPECT_EQ(slice.padded.hidden_size, item["padded_hidden"].get<int64_t>());
  EXPECT_EQ(slice.padded.intermediate_size, item["padded_intermediate_per_rank"].get<int64_t>());
  size_t count = 0;
  for (const ExpertLayer& layer : checkpoint.model.layers) {
    for (const Slot slot : kAllSlots) {
      if (!layer.has(slot)) continue;
      const auto name = fmt::format("layers.{}.{}", layer.index, slot_name(slot));
      ++count;
      EXPECT_EQ(digest_of(load_tensor(checkpoint, layer, slot, slice)),
                item["tensors"].value(name, json()))
          << name;
    }
  }
  EXPECT_EQ(count, item["tensors"].size());
}

TEST(IngestGolden, EveryExecutedLoad) {
  std::map<std::string, Checkpoint> open_ones;
  size_t count = 0;
  const auto golden = read_json(kData / "cases.json");
  for (const auto& item : golden.at("cases")) {
    const std::string name = item["checkpoint"];
    SCOPED_TRACE(name + " " + item["backends"].dump() + " tp " + item["tp_size"].dump() + " rank " +
                 item["tp_rank"].dump() + " ep " + item["ep_size"].dump() + " rank " +
                 item["ep_rank"].dump());
    if (!open_ones.contains(name)) open_ones.emplace(name, open(kData / name));
    check_case(item, open_ones.at(name));
    ++count;
  }
  EXPECT_EQ(count, 163U);
}

TEST(IngestGolden, TheOriginalFormIsLayerZeroOfTheHubForm) {
  const Checkpoint original = open(kData / "gptoss_original");
  EXPECT_EQ(original.model.style, Style::kGptOssOriginal);
  EXPECT_EQ(original.model.layers.front().engine_prefix, "model.layers.0.mlp.experts");
  const auto golden = read_json(kData / "cases.json");
  for (auto item : golden.at("cases")) {
    if (item["checkpoint"] != "gptoss_hf") continue;
    auto& tensors = item["tensors"];
    for (auto it = tensors.begin(); it != tensors.end();) {
      it = it.key().starts_with("layers.0.") ? std::next(it) : tensors.erase(it);
    }
    check_case(item, original);
  }
}

}  // namespace
}  // namespace mxfp4
