// Checkpoints to the loaded layout: every executed load of the reference's loaders, and every
// faulty checkpoint refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "formats/checkpoint/open_source.hpp"
#include "formats/checksum/sha256.hpp"
#include "formats/config/config_json.hpp"
#include "formats/source/source.hpp"
#include "lib/core/error.hpp"
#include "lib/core/float_bits.hpp"
#include "lib/load/find_layers.hpp"
#include "lib/load/slice.hpp"
#include "tests/golden/tensor_difference.hpp"
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

// The digests tell that a tensor is wrong; this class tells where, element by element, from the
// definition of the loaded layout. It asks nothing of lib/load/assembly.
class Definition {
 public:
  Definition(const Checkpoint& checkpoint, const ExpertLayer& layer, Slot slot,
             const RankSlice& slice)
      : checkpoint_(checkpoint), layer_(layer), slot_(slot), slice_(slice) {}

  // The first element of `found` that is not what the definition says, its values, and the place in
  // the checkpoint that it should have come from.
  [[nodiscard]] std::string difference(const LoadedTensor& found) const {
    const int64_t element = dtype_bytes(found.spec.dtype);
    const int64_t expert_bytes =
        found.spec.bytes() / std::max<int64_t>(1, std::ssize(slice_.experts));
    std::string first;
    for (int64_t at = 0; at < std::ssize(found.bytes); at += element) {
      const auto origin = origin_of(at % expert_bytes / element);
      const std::vector<std::byte> wanted = element_at(at / expert_bytes, origin);
      const ConstBytes have =
          ConstBytes(found.bytes).subspan(static_cast<size_t>(at), wanted.size());
      auto differs = test::find_difference(have, wanted);
      if (!differs && !first.empty()) continue;
      const std::string from = place_text(at / expert_bytes, origin);
      if (first.empty()) first = from;
      if (!differs) continue;
      differs->byte += at;
      return fmt::format("{}, from {}", test::difference_text(found.spec, *differs), from);
    }
    return fmt::format(
        "each element is what lies at its place in the checkpoint, the first one {}: "
        "the reference takes another tensor, slice or size",
        first);
  }

 private:
  struct Origin {
    int64_t row = 0;     // of the expert's stored matrix
    int64_t column = 0;  // in elements; of codes and scales in bytes
  };

  [[nodiscard]] bool is_bias() const { return slot_ == Slot::kW13Bias || slot_ == Slot::kW2Bias; }
  [[nodiscard]] bool is_input_scale() const {
    return slot_ == Slot::kW13InputScale || slot_ == Slot::kW2InputScale;
  }
  [[nodiscard]] bool is_weight() const {
    return slot_ == Slot::kW13Weight || slot_ == Slot::kW2Weight;
  }
  [[nodiscard]] bool is_float() const { return is_bias() || is_input_scale(); }

  // Where element `index` of an expert's loaded matrix lies; empty for padding.
  [[nodiscard]] std::optional<Origin> origin_of(int64_t index) const {
    if (layer_.slot(slot_).experts.front().empty()) return std::nullopt;
    if (is_input_scale()) return Origin{};
    const int64_t per_byte = is_weight() ? kCodesPerByte : kBlock;
    const bool w13 = slot_is_w13(slot_);
    const LayerDims& padded = slice_.padded;
    const int64_t contraction = w13 ? padded.hidden_size : padded.intermediate_size;
    const int64_t columns = is_bias() ? 1 : contraction / per_byte;
    const int64_t row = index / columns;
    const int64_t column = index % columns;
    const int64_t inter = layer_.dims.intermediate_size;
    const int64_t hidden = layer_.dims.hidden_size;
    if (w13) {
      const bool woven = checkpoint_.model.order == W13Order::kInterleaved;
      const int64_t up = woven ? row % 2 : row / padded.intermediate_size;
      const int64_t i = slice_.begin + (woven ? row / 2 : row % padded.intermediate_size);
      if (i >= slice_.end || (!is_bias() && column >= hidden / per_byte)) return std::nullopt;
      return Origin{woven ? 2 * i + up : up * inter + i, column};
    }
    if (row >= hidden) return std::nullopt;
    if (is_bias()) return slice_.w2_bias ? std::optional(Origin{row, 0}) : std::nullopt;
    const int64_t from = slice_.begin / per_byte + column;
    return from < slice_.end / per_byte ? std::optional(Origin{row, from}) : std::nullopt;
  }

  // The tensor and byte that an origin lies at.
  [[nodiscard]] std::pair<size_t, int64_t> place(int64_t local, const Origin& origin) const {
    const int64_t element = is_float() ? dtype_bytes(layer_.slot(slot_).dtype) : 1;
    const bool w13 = slot_is_w13(slot_);
    const int64_t contraction = w13 ? layer_.dims.hidden_size : layer_.dims.intermediate_size;
    const int64_t columns = is_float() ? 1 : contraction / (is_weight() ? kCodesPerByte : kBlock);
    int64_t at = (origin.row * columns + origin.column) * element;
    const int64_t expert = slice_.experts[static_cast<size_t>(local)];
    for (const Extent& extent : layer_.slot(slot_).experts[static_cast<size_t>(expert)]) {
      if (at < extent.bytes) return {extent.tensor, extent.offset + at};
      at -= extent.bytes;
    }
    throw Error::internal("an element lies behind the checkpoint's tensors");
  }

  [[nodiscard]] std::string place_text(int64_t local, const std::optional<Origin>& origin) const {
    if (!origin) return "padding";
    const auto [index, byte] = place(local, *origin);
    const SourceTensor& tensor = checkpoint_.source->tensors()[index];
    return fmt::format("{}: {}, byte {} (row {})", tensor.file, tensor.name, byte, origin->row);
  }

  [[nodiscard]] std::vector<std::byte> element_at(int64_t local,
                                                  const std::optional<Origin>& origin) const {
    if (!is_float()) {
      const bool weight = is_weight();
      std::vector<std::byte> out{weight ? std::byte{0} : checkpoint_.model.scale_fill};
      if (origin) read_into(out, local, *origin);
      return out;
    }
    const DType from = layer_.slot(slot_).dtype;
    const DType to = is_bias() ? checkpoint_.model.bias_dtype : DType::kF32;
    if (!origin) return std::vector<std::byte>(static_cast<size_t>(dtype_bytes(to)));
    std::vector<std::byte> stored(static_cast<size_t>(dtype_bytes(from)));
    read_into(stored, local, *origin);
    if (from == to) return stored;
    uint32_t bits = 0;  // as F32
    std::memcpy(&bits, stored.data(), stored.size());
    if (from == DType::kBF16) bits = f32_from_bf16(static_cast<uint16_t>(bits));
    if (from == DType::kF16) bits = f32_from_f16(static_cast<uint16_t>(bits));
    if (to == DType::kBF16) bits = bf16_from_f32(bits, kTorchBf16Nan);
    stored.resize(static_cast<size_t>(dtype_bytes(to)));
    std::memcpy(stored.data(), &bits, stored.size());
    return stored;
  }

  void read_into(std::vector<std::byte>& out, int64_t local, const Origin& origin) const {
    const auto [index, byte] = place(local, origin);
    checkpoint_.source->read(index, byte, out);
  }

  const Checkpoint& checkpoint_;
  const ExpertLayer& layer_;
  Slot slot_;
  const RankSlice& slice_;
};

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
      const LoadedTensor found = load_tensor(checkpoint, layer, slot, slice);
      const auto wanted = item["tensors"].value(name, json());
      EXPECT_EQ(digest_of(found), wanted)
          << name << ": " << Definition(checkpoint, layer, slot, slice).difference(found);
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

// One case of each checkpoint, on the second of two ranks, with a changed byte in the middle of
// each tensor.
TEST(IngestGolden, AFailureNamesTheElement) {
  std::map<std::string, Checkpoint> open_ones;
  const auto golden = read_json(kData / "cases.json");
  for (const auto& item : golden.at("cases")) {
    const std::string name = item["checkpoint"];
    if (item["tp_rank"] != 1 || item["tp_size"] != 2 || open_ones.contains(name)) continue;
    const Checkpoint& checkpoint = open_ones.emplace(name, open(kData / name)).first->second;
    const RankSlice slice = slice_of(item, checkpoint);
    const ExpertLayer& layer = checkpoint.model.layers.front();
    for (const Slot slot : kAllSlots) {
      if (!layer.has(slot)) continue;
      const Definition definition(checkpoint, layer, slot, slice);
      LoadedTensor tensor = load_tensor(checkpoint, layer, slot, slice);
      EXPECT_TRUE(definition.difference(tensor).starts_with("each element is what lies"))
          << name << " " << slot_name(slot) << ": " << definition.difference(tensor);
      if (tensor.bytes.empty()) continue;
      const int64_t at = std::ssize(tensor.bytes) / 2;
      tensor.bytes[static_cast<size_t>(at)] ^= std::byte{1};
      EXPECT_TRUE(definition.difference(tensor).starts_with(
          fmt::format("element {} (byte {}): expected ", test::element_text(tensor.spec, at), at)))
          << definition.difference(tensor);
    }
  }
  EXPECT_EQ(open_ones.size(), 6U);
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

TEST(IngestGolden, StylesLayersAndTheRest) {
  struct Want {
    const char* folder;
    Style style;
    size_t layers;
    const char* prefix;
    const char* engine_prefix;
    size_t rest;
  };
  const std::vector<Want> wants = {
      {"gptoss_hf", Style::kGptOss, 2, "model.layers.1.mlp.experts", "", 7},
      {"dsv4", Style::kDeepseekV4, 2, "mtp.0.ffn.experts", "model.layers.1.ffn.experts", 17},
      {"quark_w4a4", Style::kQuark, 1, "model.layers.1.mlp.experts", "", 15},
      {"quark_gptoss_w4a8", Style::kQuark, 1, "model.layers.0.mlp.experts", "", 2},
      {"ct_mxfp4", Style::kCompressedTensors, 1, "model.layers.0.mlp.experts", "", 2},
      {"ct_kimi", Style::kCompressedTensors, 1,
       "language_model.model.layers.0.block_sparse_moe.experts", "", 2},
  };
  for (const Want& want : wants) {
    const Checkpoint found = open(kData / want.folder);
    EXPECT_EQ(found.model.style, want.style) << want.folder;
    ASSERT_EQ(found.model.layers.size(), want.layers) << want.folder;
    EXPECT_EQ(found.model.layers.back().prefix, want.prefix);
    EXPECT_EQ(found.model.layers.back().engine_prefix, want.engine_prefix);
    EXPECT_EQ(found.model.rest.size(), want.rest) << want.folder;
    EXPECT_TRUE(found.model.warnings.empty()) << want.folder << found.model.warnings.front();
  }
}

TEST(IngestGolden, EveryFaultIsRefusedByName) {
  const auto golden = read_json(kData / "bad" / "manifest.json");
  for (const auto& item : golden.at("cases")) {
    const std::string folder = item["dir"];
    try {
      (void)open(kData / folder);
      ADD_FAILURE() << folder << " was accepted: " << item["why"];
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_EQ(error.kind(), ErrorKind::kInput) << folder << message;
      EXPECT_TRUE(message.find("config.json") != std::string::npos ||
                  message.find("model.safetensors") != std::string::npos)
          << folder << ": " << message;
    }
  }
  EXPECT_EQ(golden.at("cases").size(), 25U);
}

}  // namespace
}  // namespace mxfp4
