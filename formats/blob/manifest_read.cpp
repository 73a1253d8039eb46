// JSON text -> Manifest. The text is untrusted: every field is typed and checked, and then the
// fields against each other (manifest_check).
#include <fmt/format.h>

#include <algorithm>

#include "formats/blob/manifest.hpp"
#include "formats/blob/manifest_check.hpp"
#include "formats/blob/planned.hpp"
#include "formats/blob/written_form.hpp"
#include "formats/checksum/checksum.hpp"
#include "formats/json/json_fields.hpp"
#include "formats/json/strict_json.hpp"
#include "formats/os/input_fault.hpp"
#include "lib/core/checked.hpp"
#include "lib/core/deployment_facts.hpp"
#include "lib/core/error.hpp"
#include "lib/core/text.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

std::string read_checksum(const JsonFields& object) {
  std::string sum = object.string("xxh3_128");
  if (sum.size() == 32 && sum.find_first_not_of("0123456789abcdef") == std::string::npos)
    return sum;
  throw Error::input(fmt::format("{}: {}, expected 32 hexadecimal digits", object.path("xxh3_128"),
                                 in_quotes(sum)));
}

int64_t read_ranks(const JsonFields& object, std::string_view key) {
  const int64_t ranks = object.integer(key);
  if (ranks >= 0 && ranks <= kMostRanks) return ranks;
  throw Error::input(
      fmt::format("{}: {}, at most {} are accepted", object.path(key), ranks, kMostRanks));
}

// The value that `lookup` finds for the string at `key`, or an error that names both.
template <class Lookup>
auto named(const JsonFields& object, std::string_view key, Lookup lookup) {
  const std::string name = object.string(key);
  const auto value = lookup(name);
  if (!value) throw Error::input(fmt::format("{}: unknown value '{}'", object.path(key), name));
  return *value;
}

std::map<std::string, std::string> string_map(const JsonFields& object) {
  std::map<std::string, std::string> out;
  for (const auto& item : object.value().items()) out[item.key()] = object.string(item.key());
  return out;
}

Storage read_storage(const JsonFields& object) {
  Storage storage;
  storage.torch_dtype = object.string_or("torch_dtype", "");
  storage.layout = object.string_or("layout", "");
  storage.layout_name = object.string_or("layout_name", "");
  if (object.has("layout_kwargs")) {
    const JsonFields kwargs = object.object("layout_kwargs");
    for (const auto& item : kwargs.value().items()) {
      storage.layout_kwargs.emplace_back(item.key(), kwargs.integer(item.key()));
    }
  }
  const auto list = [&](std::string_view key) {
    return object.has(key) ? object.integers(key) : std::vector<int64_t>{};
  };
  storage.layout_init_shape = list("layout_init_shape");
  storage.storage_shape = list("storage_shape");
  storage.storage_strides = list("storage_strides");
  storage.logical_shape = list("logical_shape");
  storage.logical_dtype = object.string_or("logical_dtype", "");
  storage.slack_bytes = object.integer_or("slack_bytes", 0);
  if (object.has("flags")) storage.flags = object.strings("flags");
  return storage;
}

Decision read_decision(const JsonFields& object) {
  Decision decision;
  if (object.has("backend")) decision.backend = named(object, "backend", backend_from_name);
  decision.experts_class = object.string_or("experts_class", "");
  decision.forced = object.boolean("forced");
  for (const nlohmann::json& step : object.at("trace")) {
    if (!step.is_array() || step.size() != 4 || !step[0].is_string() || !step[2].is_boolean()) {
      throw Error::input(object.path("trace") + ": expected [class, key, supported, reason]");
    }
    decision.trace.push_back(
        {step[0].get<std::string>(),
         step[1].is_string() ? std::optional(step[1].get<std::string>()) : std::nullopt,
         step[2].get<bool>(), step[3].is_string() ? step[3].get<std::string>() : ""});
  }
  decision.notes = object.strings("notes");
  return decision;
}

Target read_target(const JsonFields& object) {
  Target target;
  target.backend = named(object, "backend", backend_from_name);
  target.family = named(object, "family", family_from_name);
  target.platform = named(object, "platform", platform_from_name);
  target.arch = object.string("arch");
  target.world_size = read_ranks(object, "world_size");
  target.activation = object.string_or("activation", "");
  target.knobs = string_map(object.object("knobs"));
  target.env = string_map(object.object("env"));
  return target;
}

ParallelConfig read_parallel(const JsonFields& object) {
  ParallelConfig parallel;
  for_each_fact_of<ParallelConfig>([&](const FactRow& row, auto members) {
    if (row.absent_if_zero && !object.has(row.manifest_key())) return;
    object.read(row.manifest_key(), parallel.*members.known);
  });
  return parallel;
}

RankSlice read_rank(const JsonFields& object) {
  RankSlice rank;
  rank.rank = object.integer("rank");
  rank.num_ranks = read_ranks(object, "num_ranks");
  rank.tp_rank = object.integer("tp_rank");
  rank.tp_size = read_ranks(object, "tp_size");
  rank.ep_rank = object.integer("ep_rank");
  rank.ep_size = read_ranks(object, "ep_size");
  rank.experts = object.integers("experts");
  const std::vector<int64_t> range = object.integers("intermediate_range");
  if (range.size() != 2 || range[0] > range[1]) {
    throw Error::input(object.path("intermediate_range") + ": expected [begin, end]");
  }
  rank.begin = range[0];
  rank.end = range[1];
  rank.w2_bias = object.boolean("w2_bias");
  return rank;
}

ManifestTensor read_tensor(const JsonFields& object) {
  ManifestTensor tensor;
  tensor.name = object.string("name");
  const std::vector<int64_t> dims = object.integers("shape");
  tensor.spec = {named(object, "dtype", dtype_from_name), Shape(std::span(dims))};
  (void)tensor.spec.bytes();  // overflow is refused here
  tensor.xxh3_128 = read_checksum(object);
  tensor.storage = read_storage(object.object("storage"));
  return tensor;
}

PublishedLayer read_published(const JsonFields& object) {
  PublishedLayer published;
  published.intermediate_size = object.integer("intermediate_size");
  published.experts = object.integer("experts");
  object.each("tensors", [&](const JsonFields& item) {
    const std::vector<int64_t> dims = item.integers("shape");
    PublishedTensor tensor{item.string("name"),
                           {named(item, "dtype", dtype_from_name), Shape(std::span(dims))}};
    (void)tensor.spec.bytes();  // overflow is refused here
    published.tensors.push_back(std::move(tensor));
  });
  object.each("files", [&](const JsonFields& item) {
    PublishedRun run{item.string("file"), item.integer("tensors")};
    in_context(item.path("file"), [&] { check_plain_name(run.file); });
    if (!run.file.ends_with(".safetensors")) {
      throw Error::input(item.path("file") + ": not the name of a safetensors file");
    }
    published.runs.push_back(std::move(run));
  });
  published.sample = object.string_or("sample", "");
  constexpr int64_t kMostTensors = int64_t{1} << 20;  // of a layer
  const int64_t count =
      checked_mul(std::max<int64_t>(published.experts, 1), std::ssize(published.tensors));
  if (count == 0 || count > kMostTensors) {
    throw Error::input(object.path("tensors") + ": none, or too many");
  }
  return published;
}

CheckpointFacts read_checkpoint(const JsonFields& object) {
  CheckpointFacts checkpoint;
  if (object.has("config")) checkpoint.config = object.string("config");
  if (object.has("attributes")) checkpoint.attributes = string_map(object.object("attributes"));
  if (object.has("left_out")) {
    const std::vector<std::string> left = object.strings("left_out");
    checkpoint.left_out = {left.begin(), left.end()};
  }
  return checkpoint;
}

ManifestLayer read_layer(const JsonFields& object) {
  ManifestLayer layer;
  layer.index = object.integer("index");
  layer.prefix = object.string("prefix");
  layer.engine_prefix = object.string_or("engine_prefix", "");
  layer.file = object.string("file");
  in_context(object.path("file"), [&] { check_plain_name(layer.file); });
  layer.size = object.integer("size");
  layer.xxh3_128 = read_checksum(object);
  if (object.has("experts")) layer.experts = object.integers("experts");
  const JsonFields sizes = object.object("sizes");
  layer.hidden_size = sizes.integer("hidden_size");
  layer.loaded.dims = {sizes.integer("num_experts"), sizes.integer("padded_hidden_size"),
                       sizes.integer("padded_intermediate_size")};
  if (sizes.has("bias")) layer.loaded.bias = named(sizes, "bias", dtype_from_name);
  layer.loaded.input_scales = sizes.boolean("input_scales");
  in_context(object.path("sizes"), [&] { layer.loaded.check(); });
  object.each("tensors",
              [&](const JsonFields& item) { layer.tensors.push_back(read_tensor(item)); });
  if (object.has("published")) layer.published = read_published(object.object("published"));
  return layer;
}

std::byte read_byte(const JsonFields& object, const char* key) {
  const int64_t byte = object.integer(key);
  if (byte < 0 || byte > 0xFF) throw Error::input(object.path(key) + ": not a byte");
  return static_cast<std::byte>(byte);
}

// What names the engine: vLLM's commit, or another engine and its names of parameters.
void read_engine(const JsonFields& object, Manifest& manifest) {
  if (!object.has("engine")) {
    manifest.vllm_commit = object.string("vllm_commit");
    return;
  }
  manifest.engine = named(object, "engine", engine_from_name);
  if (manifest.engine != engine_of_revision(manifest.revision)) {
    throw Error::input(fmt::format("engine: {}, but the revision is {}",
                                   engine_name(manifest.engine), in_quotes(manifest.revision)));
  }
  manifest.parameter_names = string_map(object.object("parameter_names"));
}

void read_model(const JsonFields& object, Manifest& manifest) {
  manifest.style = style_name(named(object, "style", style_from_name));
  manifest.loader = named(object, "loader", loader_from_name);
  manifest.order = named(object, "w13_order", w13_order_from_name);
  manifest.scale_fill = read_byte(object, "scale_fill");
  if (object.has("hidden_scale_fill")) {
    manifest.hidden_scale_fill = read_byte(object, "hidden_scale_fill");
  }
  manifest.bias_dtype = named(object, "bias_dtype", dtype_from_name);
  manifest.all_layers = object.boolean("all_layers");
}

ManifestFile read_file(const JsonFields& object) {
  ManifestFile file{object.string("file"), object.integer("size"), read_checksum(object)};
  in_context(object.path("file"), [&] { check_plain_name(file.name); });
  return file;
}

// The error for a text without the seal that ends every manifest: what it is instead.
Error no_seal(std::string_view text) {
  constexpr const char* kAgain = "is the copy complete? fetch the file again";
  if (text.empty()) return Error::input("an empty file").hint(kAgain);
  if (is_lfs_pointer(text)) return Error::input(kLfsPointer).hint(kFetchLfs);
  return Error::input("manifest_xxh3_128: missing").hint(kAgain);
}

}  // namespace

void check_plain_name(const std::string& name) {
  if (name.empty() || name.front() == '.' || name.find('/') != std::string::npos ||
      name.find('\0') != std::string::npos) {
    throw Error::input("expected a plain file name");
  }
}

void check_seal(std::string_view text) {
  const size_t at = text.rfind(kManifestSeal);
  if (at == std::string_view::npos) throw no_seal(text);
  if (text.substr(at + kManifestSeal.size()) != checksum_of(text.substr(0, at)) + "\"\n}\n") {
    throw InputFault(Fault::kChecksum,
                     "manifest_xxh3_128: the manifest was changed after it was written");
  }
}

void check_written_form(std::string_view found, std::string_view expected) {
  if (found == expected) return;
  int64_t number = 1;
  while (true) {
    const std::string_view line = found.substr(0, found.find('\n'));
    const std::string_view wanted = expected.substr(0, expected.find('\n'));
    if (line != wanted || line.size() == found.size() || wanted.size() == expected.size()) {
      throw Error::input(fmt::format("line {}: {}, this program would write {}", number,
                                     in_quotes(line), in_quotes(wanted)));
    }
    found.remove_prefix(line.size() + 1);
    expected.remove_prefix(wanted.size() + 1);
    ++number;
  }
}

// A blob states every checksum: a reader compares nothing where none is known.
void check_checksums_known(const Manifest& manifest) {
  const auto check = [](const std::string& of, std::string_view checksum) {
    if (checksum == kNoChecksum) {
      throw Error::input(fmt::format("{}: xxh3_128: is not known, as in a plan", of));
    }
  };
  for (const ManifestLayer& layer : manifest.layers) {
    check(layer.file, layer.xxh3_128);
    for (const ManifestTensor& tensor : layer.tensors) check(tensor.name, tensor.xxh3_128);
  }
}

Manifest parse_manifest(std::string_view text) {
  check_seal(text);
  const nlohmann::json json = parse_strict_json(text);
  Manifest manifest = manifest_from_json(JsonFields(json));
  check_checksums_known(manifest);
  check_written_form(text, write_manifest(manifest));
  return manifest;
}

Manifest manifest_from_json(const JsonFields& object) {
  if (object.string("format") != "mxfp4-repack") {
    throw Error::input("format: expected 'mxfp4-repack'");
  }
  if (object.integer("format_version") != kFormatVersion) {
    throw Error::input(
        fmt::format("format_version: {} is not known to this program, which knows {}",
                    object.integer("format_version"), kFormatVersion))
        .hint(kNewerProgram);
  }
  Manifest manifest;
  manifest.tool_version = object.string("tool_version");
  manifest.revision = object.string("revision");
  read_engine(object, manifest);
  manifest.layout = object.string("layout");
  manifest.kernel_library = object.string_or("kernel_library", "");
  if (object.has("also_serves")) manifest.also_serves = string_map(object.object("also_serves"));
  manifest.decision = read_decision(object.object("decision"));
  manifest.decision.revision = manifest.revision;
  if (object.has("asked")) manifest.asked = object.object("asked").value().dump();
  manifest.target = read_target(object.object("target"));
  manifest.parallel = read_parallel(object.object("deployment"));
  manifest.rank = read_rank(object.object("rank"));
  read_model(object.object("model"), manifest);
  object.each("layers",
              [&](const JsonFields& item) { manifest.layers.push_back(read_layer(item)); });
  const JsonFields compression = object.object("compression");
  manifest.compression.zstd = compression.string("method") == "zstd";
  if (manifest.compression.zstd) {
    manifest.compression.level = static_cast<int>(compression.integer("level"));
    manifest.libzstd = compression.string("libzstd");
  }
  if (object.has("rest")) {
    object.each("rest", [&](const JsonFields& item) { manifest.rest.push_back(read_file(item)); });
  }
  check_manifest(manifest);
  if (object.has("checkpoint")) manifest.checkpoint = read_checkpoint(object.object("checkpoint"));
  const JsonFields source = object.object("source");
  manifest.source.kind = source.string("kind");
  if (source.has("model_type")) manifest.source.model_type = source.string("model_type");
  if (source.has("activation")) manifest.source.activation = source.string("activation");
  source.each("files", [&](const JsonFields& item) {
    manifest.source.files.push_back(
        {item.string("name"), item.integer("size"), item.string_or("sha256", "")});
  });
  manifest.warnings = object.strings("warnings");
  return manifest;
}

}  // namespace mxfp4
