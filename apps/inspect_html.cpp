#include "apps/inspect_html.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>
#include <string_view>

#include "apps/html_page.hpp"
#include "apps/text_layout.hpp"
#include "lib/core/parallel_text.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

std::string fact(std::string_view what, std::string_view value) {
  return fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", what, html_escaped(value));
}

double share(int64_t part, int64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

void add_size(HtmlTable& table, std::string_view what, const ByteSizes& size, int64_t all_data) {
  table.add({{std::string(what)},
             {human_bytes(size.data_bytes)},
             {human_bytes(size.stored_bytes)},
             {fmt::format("{:.3f}", size.ratio())},
             {fmt::format("<div class=bar><div style=\"width:{:.1f}%\"></div></div>",
                          100 * share(size.stored_bytes, all_data))}});
}

std::string sizes(const std::vector<PageRank>& ranks) {
  std::map<std::string, ByteSizes> kinds;  // by name, only those that occur
  ByteSizes all;
  for (const PageRank& rank : ranks) {
    for (const LayerTensor& tensor : rank.tensors) {
      kinds[tensor_kind_text(tensor.kind)] += tensor;
      all += tensor;
    }
  }
  HtmlTable table({{"kind"},
                   {"decoded", true},
                   {"stored", true},
                   {"ratio", true},
                   {"stored, as a share of all that is decoded"}});
  for (const auto& [kind, size] : kinds) add_size(table, kind, size, all.data_bytes);
  add_size(table, "all", all, all.data_bytes);
  return "<h2>Sizes</h2>\n" + table.html();
}

// Says how sizes are padded, and which share of the codes is padding.
std::string padding(const Manifest& manifest) {
  if (manifest.layers.empty()) return "no layers";
  const ManifestLayer& layer = manifest.layers.front();
  const LayerDims& to = layer.loaded.dims;
  const int64_t inter = manifest.rank.end - manifest.rank.begin;
  const double kept = share(layer.hidden_size, to.hidden_size) * share(inter, to.intermediate_size);
  return fmt::format("H {} to {}, I {} to {}: {:.1f} % of the codes", layer.hidden_size,
                     to.hidden_size, inter, to.intermediate_size, 100 * (1 - kept));
}

std::string facts(const std::vector<PageRank>& ranks) {
  const Manifest& first = ranks.front().manifest;
  std::string out = "<table>\n";
  out += fact("backend", backend_name(first.target.backend));
  out += fact("layout", first.layout);
  out += fact("made for",
              fmt::format("{} {}", platform_name(first.target.platform), first.target.arch));
  out += fact("rules", first.vllm_commit.empty()
                           ? first.revision
                           : fmt::format("{} (vLLM {})", first.revision, first.vllm_commit));
  if (!first.kernel_library.empty()) out += fact("kernel library", first.kernel_library);
  out += fact("ranks", fmt::format("{} of {}; {}", ranks.size(), first.rank.num_ranks,
                                   parallel_text(first.parallel)));
  out += fact("layers",
              fmt::format("{}, {} experts a rank", first.layers.size(), first.rank.experts.size()));
  out += fact("padding", padding(first));
  out += fact("compression", first.compression.zstd
                                 ? fmt::format("zstd, level {}", first.compression.level)
                                 : "none");
  out += fact("made from", fmt::format("{}, {}, names of {}", first.source.kind,
                                       count_of(first.source.files.size(), "file"), first.style));
  out += fact("made by", "mxfp4-repack " + first.tool_version);
  out += "</table>\n";
  std::set<std::string> warnings;
  for (const PageRank& rank : ranks) {
    warnings.insert(rank.manifest.warnings.begin(), rank.manifest.warnings.end());
  }
  for (const std::string& warning : warnings) {
    out += fmt::format("<p class=warn>Warning: {}</p>\n", html_escaped(warning));
  }
  return out;
}

// How to serve the blob, by the plug-in's two forms.
std::string serve_command(const fs::path& blob, const Manifest& manifest) {
  const std::string name = shell_word(blob.string());
  if (manifest.engine == Engine::kSglang) {
    return fmt::format(
        "MXFP4_REPACK_BLOB={} MXFP4_REPACK_SKIP_RAW=1 python -m sglang.launch_server "
        "--model-path MODEL",
        name);
  }
  if (!manifest.rest.empty()) return fmt::format("vllm serve {} --load-format mxfp4_repack", name);
  return fmt::format(
      "vllm serve MODEL --load-format mxfp4_repack --model-loader-extra-config "
      "'{{\"blob\": \"{}\"}}'",
      blob.string());
}

std::string serve_part(const fs::path& blob, const Manifest& manifest) {
  const bool own = manifest.engine == Engine::kVllm && !manifest.rest.empty();
  return fmt::format(
      "<h2>Serve</h2>\n<p>{}</p>\n<p>{}The plug-in of {} compares the blob with the running "
      "engine. "
      "{} says beforehand whether it fits.</p>\n",
      html_code(serve_command(blob, manifest)), own ? "" : "MODEL is the checkpoint. ",
      engine_title(manifest.engine),
      html_code(fmt::format("mxfp4-repack fits {} --target FILE", shell_word(blob.string()))));
}

std::string decision_part(const Decision& decision) {
  std::string out = "<h2>Decision</h2>\n";
  if (decision.forced)
    return out + "<p>The backend was given: the engine's rules were not asked.</p>\n";
  HtmlTable table({{"candidate"}, {"activations"}, {"chosen"}, {"reason"}});
  for (const TraceStep& step : decision.trace) {
    const std::string_view chosen = step.supported ? "yes" : "no";
    table.add({{html_code(step.candidate)},
               {html_escaped(step.key.value_or(""))},
               {std::string(chosen), chosen},
               {html_escaped(step.reason)}});
  }
  out += table.html();
  for (const std::string& note : decision.notes) {
    out += fmt::format("<p class=warn>{}</p>\n", html_escaped(note));
  }
  return out;
}

struct LayerPart {
  HtmlTable table{
      {{"tensor"}, {"dtype"}, {"shape"}, {"decoded", true}, {"stored", true}, {"ratio", true}}};
  ByteSizes size{};
};

std::string tensors_part(const PageRank& rank) {
  std::string out = fmt::format("<h2>Tensors of {}</h2>\n", html_escaped(rank.directory));
  std::map<int64_t, LayerPart> layers;
  for (const LayerTensor& tensor : rank.tensors) {
    const std::string strides =
        tensor.strides.empty() ? "" : fmt::format(", strides {}", fmt::join(tensor.strides, ", "));
    LayerPart& layer = layers[tensor.layer];
    layer.table.add({{html_code(tensor.name)},
                     {std::string(tensor.dtype)},
                     {fmt::format("{}{}", fmt::join(tensor.shape, " × "), strides)},
                     {human_bytes(tensor.data_bytes)},
                     {human_bytes(tensor.stored_bytes)},
                     {fmt::format("{:.3f}", tensor.ratio())}});
    layer.size += tensor;
  }
  for (const auto& [index, layer] : layers) {
    out +=
        fmt::format("<details><summary>Layer {}: {} decoded, {} stored</summary>\n{}</details>\n",
                    index, human_bytes(layer.size.data_bytes), human_bytes(layer.size.stored_bytes),
                    layer.table.html());
  }
  return out;
}

}  // namespace

std::string blob_page(const fs::path& blob, const std::vector<PageRank>& ranks) {
  std::string body = facts(ranks) + serve_part(blob, ranks.front().manifest) + sizes(ranks) +
                     decision_part(ranks.front().manifest.decision);
  for (const PageRank& rank : ranks) body += tensors_part(rank);
  return html_page(blob.string(), body);
}

}  // namespace mxfp4
