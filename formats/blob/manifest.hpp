// mxfp4_repack.json, the manifest of a blob: written last, so its presence means that the blob is
// complete. The only place that writes or reads its JSON. The field list is in
// man/mxfp4-repack-container.5.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/source/source.hpp"
#include "lib/core/deployment.hpp"
#include "lib/core/layer.hpp"
#include "lib/core/storage.hpp"
#include "lib/load/expert_layer.hpp"
#include "lib/load/slice.hpp"
#include "lib/plan/recipe.hpp"

namespace mxfp4 {

class JsonFields;

inline constexpr std::string_view kManifestName = "mxfp4_repack.json";
inline constexpr std::string_view kIndexName = "model.safetensors.index.json";
// Inside a model directory the blob has a folder of its own.
inline constexpr std::string_view kBlobFolder = "mxfp4_repack";
inline constexpr int64_t kFormatVersion = 2;

// The hint for a blob that says what only a later version of this program knows.
inline constexpr const char* kNewerProgram =
    "a newer mxfp4-repack wrote this blob; update this one";

// In the __metadata__ of every packed layer file, and of no other.
inline constexpr const char* kPackedMark = "mxfp4_repack.layout";

struct ManifestTensor {
  std::string name;  // with the prefix
  TensorSpec spec;
  std::string xxh3_128;  // of the decoded bytes
  Storage storage;
};

struct ManifestLayer {
  int64_t index = 0;
  std::string prefix;
  std::string engine_prefix;  // empty: equal to prefix
  std::string file;           // name inside the blob
  int64_t size = 0;           // bytes of the file
  std::string xxh3_128;       // of the file
  Recipe recipe;
  std::vector<ManifestTensor> tensors;
  // How the checkpoint stores the layer; the same in every rank's manifest. Empty where a blob cannot
  // keep that.
  std::optional<PublishedLayer> published;
};

// A file of the model directory around the blob (convert --include-rest): other tensors,
// configuration, tokenizer.
struct ManifestFile {
  std::string name;
  int64_t size = 0;
  std::string xxh3_128;
};

struct Compression {
  bool zstd = true;
  int level = 1;
  std::string libzstd{};  // version that compressed the blob
};

struct SourceSummary {
  std::string kind;        // "safetensors", "hdf5", "raw"
  std::string model_type;  // of its config.json; empty: none
  std::string activation;  // Quantization::activation of compressed-tensors; empty: none
  std::vector<SourceFile> files;
};

// What a checkpoint says beside its tensors: with ManifestLayer::published it makes a blob an input
// of convert.
struct CheckpointFacts {
  std::optional<std::string> config;              // the text of its config.json
  std::map<std::string, std::string> attributes;  // of an input in the loaded layout
  std::set<std::string> left_out;                 // as ModelLayers::left_out
  friend bool operator==(const CheckpointFacts&, const CheckpointFacts&) = default;
};

struct Manifest {
  std::string tool_version;
  std::string revision;
  Engine engine = Engine::kVllm;  // of the revision
  std::string vllm_commit;        // of vLLM; empty for another engine
  // What the engine calls a parameter that the blob calls otherwise, by the blob's name.
  std::map<std::string, std::string> parameter_names;
  std::string layout;  // id, of every recipe
  std::string kernel_library;
  Decision decision;
  // The request that was made, as parse_checkpoint_request reads it: a JSON object's text, its
  // members sorted by name. The same in every rank's manifest.
  std::string asked = "{}";
  Target target;
  ParallelConfig parallel;
  RankNumbers rank;
  std::string style;
  Loader loader = Loader::kLoaded;
  std::byte scale_fill{0};  // with which the loader pads, whether or not something is padded
  bool all_layers = true;   // false: --layers or --shard chose some
  std::vector<ManifestLayer> layers;
  // The same in every rank's manifest; empty: the blob is whole by itself.
  std::vector<ManifestFile> rest;
  CheckpointFacts checkpoint;
  SourceSummary source;
  Compression compression;
  std::vector<std::string> warnings;
};

// "rank-03-of-08" with several ranks, "." with one.
[[nodiscard]] std::filesystem::path rank_directory(const RankNumbers& rank);
// "rank-03-of-08/layer-00001.safetensors": a layer file's name relative to the blob.
[[nodiscard]] std::string name_in_blob(const RankNumbers& rank, const std::string& file);
// "layer-00003.safetensors" or "layer-00003.safetensors.zst".
[[nodiscard]] std::string layer_file_name(int64_t index, bool zstd);
// Whether it is such a name, compressed or not.
[[nodiscard]] bool is_layer_file_name(std::string_view name);

// Bytes on disk of all layer files that these manifests name.
[[nodiscard]] int64_t stored_bytes(const std::vector<Manifest>& manifests);

// JSON text, two-space indent, ends with a newline. Deterministic.
[[nodiscard]] std::string write_manifest(const Manifest& manifest);
// A blob's manifest. Any JSON text with the members is accepted. Throws Error::input naming the key,
// or the tensor whose checksum is not known.
[[nodiscard]] Manifest parse_manifest(std::string_view text);

// The manifest without its seal, as a part of another document, and back. Throws Error::input
// naming the key.
[[nodiscard]] nlohmann::ordered_json manifest_to_json(const Manifest& manifest);
[[nodiscard]] nlohmann::ordered_json storage_to_json(const Storage& storage);
[[nodiscard]] nlohmann::ordered_json recipe_to_json(const Recipe& recipe);
[[nodiscard]] Manifest manifest_from_json(const JsonFields& object);

// Seals a JSON object: it gets a last member "manifest_xxh3_128", the checksum of the others as text
// without blanks, the members of each object sorted by name. So the seal is of what is said, not of how
// it is spelled.
[[nodiscard]] std::string seal_json(const nlohmann::ordered_json& json);

// Throws unless all that a manifest takes from outside is UTF-8, as JSON must be: Error::input for
// names of files, Error::usage for values of flags.
void check_text(const Manifest& manifest);

// Throws Error::input unless `name`, from a manifest, is a plain name of a file in its directory.
void check_plain_name(const std::string& name);

// The text of a Hugging Face index: weight_map and total_size.
[[nodiscard]] std::string write_index(const Manifest& manifest);

// The __metadata__ of a file in the loaded layout: what convert has to know when the file is its
// input.
[[nodiscard]] std::map<std::string, std::string> loaded_metadata(const Manifest& manifest,
                                                                 const ManifestLayer& layer);

// The __metadata__ of a layer file: if packed, kPackedMark and what safetensors cannot say.
[[nodiscard]] std::map<std::string, std::string> layer_metadata(const Manifest& manifest,
                                                                const ManifestLayer& layer);

// The bytes before a layer file's data. `layer` needs no checksums yet.
[[nodiscard]] std::string layer_header(const Manifest& manifest, const ManifestLayer& layer);

}  // namespace mxfp4
