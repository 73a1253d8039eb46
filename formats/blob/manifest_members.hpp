// Which members a manifest has: one description, by which they are written and read.
//
// Io is ManifestWriter or ManifestReader (manifest_json.cpp): value() for plain values, name() for
// enumerators, optional() for what is absent where it is empty, object() and objects() for what has a
// description here, and present() to ask whether a member is there.
#pragma once

#include "formats/blob/manifest.hpp"
#include "lib/core/deployment_facts.hpp"
#include "lib/plan/frames.hpp"

namespace mxfp4::manifest_members {

template <class Io>
void members(Io& io, typename Io::template Of<Storage> storage) {
  io.optional("torch_dtype", storage.torch_dtype);
  io.optional("layout", storage.layout);
  io.optional("layout_name", storage.layout_name);
  if (io.present("layout_kwargs", !storage.layout.empty())) {
    io.value("layout_kwargs", storage.layout_kwargs);
  }
  io.optional("layout_init_shape", storage.layout_init_shape);
  io.optional("storage_shape", storage.storage_shape);
  io.optional("storage_strides", storage.storage_strides);
  io.optional("logical_shape", storage.logical_shape);
  io.optional("logical_dtype", storage.logical_dtype);
  io.optional("slack_bytes", storage.slack_bytes);
  io.optional("flags", storage.flags);
}

template <class Io>
void members(Io& io, typename Io::template Of<Decision> decision) {
  io.name("backend", decision.backend);
  io.optional("experts_class", decision.experts_class);
  io.value("forced", decision.forced);
  io.value("trace", decision.trace);
  io.value("notes", decision.notes);
}

template <class Io>
void members(Io& io, typename Io::template Of<Target> target) {
  io.name("backend", target.backend);
  io.name("family", target.family);
  io.name("platform", target.platform);
  io.value("arch", target.arch);
  io.value("world_size", target.world_size);
  io.optional("activation", target.activation);
  io.value("knobs", target.knobs);
  io.value("env", target.env);
}

template <class Io>
void members(Io& io, typename Io::template Of<ParallelConfig> parallel) {
  for_each_fact_of<ParallelConfig>([&](const FactRow& row, auto fact) {
    auto& value = parallel.*fact.known;
    if (row.absent_if_zero) {
      io.optional(row.manifest_key(), value);
    } else {
      io.value(row.manifest_key(), value);
    }
  });
}

template <class Io>
void members(Io& io, typename Io::template Of<RankNumbers> rank) {
  io.value("rank", rank.rank);
  io.value("num_ranks", rank.num_ranks);
  io.value("tp_rank", rank.tp_rank);
  io.value("tp_size", rank.tp_size);
  io.value("ep_rank", rank.ep_rank);
  io.value("ep_size", rank.ep_size);
}

template <class Io>
void members(Io& io, typename Io::template Of<Recipe> recipe) {
  io.name("weights", recipe.weights);
  io.value("layout", recipe.layout);
  io.value("parameters", recipe.parameters);
  io.value("experts", recipe.experts);
  io.value("hidden_size", recipe.hidden_size);
  io.value("padded_hidden_size", recipe.padded_hidden_size);
  io.value("intermediate_begin", recipe.intermediate_begin);
  io.value("intermediate_end", recipe.intermediate_end);
  io.value("padded_intermediate_size", recipe.padded_intermediate_size);
  io.name("w13_order", recipe.order);
  io.value("hidden_fill", recipe.hidden_fill);
  io.value("intermediate_fill", recipe.intermediate_fill);
  io.name("bias", recipe.bias);
  io.value("w2_bias", recipe.w2_bias);
  io.value("input_scales", recipe.input_scales);
}

template <class Io>
void members(Io& io, typename Io::template Of<TensorSpec> spec) {
  io.name("dtype", spec.dtype);
  io.value("shape", spec.shape);
}

template <class Io>
void members(Io& io, typename Io::template Of<ManifestTensor> tensor) {
  io.value("name", tensor.name);
  members(io, tensor.spec);
  io.value("xxh3_128", tensor.xxh3_128);
  io.object("storage", tensor.storage);
}

template <class Io>
void members(Io& io, typename Io::template Of<PublishedTensor> tensor) {
  io.value("name", tensor.tail);
  members(io, tensor.spec);
}

template <class Io>
void members(Io& io, typename Io::template Of<PublishedRun> run) {
  io.value("file", run.file);
  io.value("tensors", run.tensors);
}

template <class Io>
void members(Io& io, typename Io::template Of<PublishedLayer> published) {
  io.value("intermediate_size", published.intermediate_size);
  io.value("experts", published.experts);
  io.objects("tensors", published.tensors);
  io.objects("files", published.runs);
  io.optional("sample", published.sample);
}

template <class Io>
void members(Io& io, typename Io::template Of<ManifestLayer> layer) {
  io.value("index", layer.index);
  io.value("prefix", layer.prefix);
  io.optional("engine_prefix", layer.engine_prefix);
  io.value("file", layer.file);
  io.value("size", layer.size);
  io.value("xxh3_128", layer.xxh3_128);
  io.shared_recipe("recipe", layer.recipe);
  io.objects("tensors", layer.tensors);
  if (io.present("published", layer.published.has_value())) {
    io.object("published", io.there(layer.published));
  }
}

template <class Io>
void members(Io& io, typename Io::template Of<ManifestFile> file) {
  io.value("file", file.name);
  io.value("size", file.size);
  io.value("xxh3_128", file.xxh3_128);
}

template <class Io>
void members(Io& io, typename Io::template Of<CheckpointFacts> checkpoint) {
  io.optional("config", checkpoint.config);
  io.optional("attributes", checkpoint.attributes);
  io.optional("left_out", checkpoint.left_out);
}

template <class Io>
void members(Io& io, typename Io::template Of<SourceFile> file) {
  io.value("name", file.name);
  io.value("size", file.size);
  io.optional("sha256", file.sha256);
}

template <class Io>
void members(Io& io, typename Io::template Of<SourceSummary> source) {
  io.value("kind", source.kind);
  io.optional("model_type", source.model_type);
  io.optional("activation", source.activation);
  io.objects("files", source.files);
}

template <class Io>
void members(Io& io, typename Io::template Of<Compression> compression) {
  io.one_of("method", compression.zstd, "none", "zstd");
  if (!compression.zstd) return;
  io.value("level", compression.level);
  io.constant("frame_bytes", kFrameBytes);
  io.value("libzstd", compression.libzstd);
}

template <class Io>
void members(Io& io, typename Io::template Of<Manifest> manifest) {
  io.value("tool_version", manifest.tool_version);
  io.value("revision", manifest.revision);
  io.name("engine", manifest.engine);
  io.optional("vllm_commit", manifest.vllm_commit);
  io.optional("parameter_names", manifest.parameter_names);
  io.value("layout", manifest.layout);
  io.optional("kernel_library", manifest.kernel_library);
  io.object("decision", manifest.decision);
  io.json_text("asked", manifest.asked);
  io.object("target", manifest.target);
  io.object("deployment", manifest.parallel);
  io.object("rank", manifest.rank);
  io.group("model", [&](auto& model) {
    model.value("style", manifest.style);
    model.name("loader", manifest.loader);
    model.value("scale_fill", manifest.scale_fill);
    model.value("all_layers", manifest.all_layers);
  });
  io.recipes("recipes");
  io.objects("layers", manifest.layers);
  if (io.present("rest", !manifest.rest.empty())) io.objects("rest", manifest.rest);
  if (io.present("checkpoint", manifest.checkpoint != CheckpointFacts{})) {
    io.object("checkpoint", manifest.checkpoint);
  }
  io.object("source", manifest.source);
  io.object("compression", manifest.compression);
  io.value("warnings", manifest.warnings);
}

}  // namespace mxfp4::manifest_members
