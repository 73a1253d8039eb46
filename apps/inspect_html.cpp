#include "apps/inspect_html.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>
#include <map>
#include <set>
#include <string_view>
#include <system_error>

#include "apps/text_layout.hpp"
#include "formats/os/atomic_file.hpp"
#include "lib/core/error.hpp"
#include "lib/core/parallel_text.hpp"
#include "lib/core/visible.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

// The beginning of every page. A file that does not begin so is not replaced.
constexpr std::string_view kFront = "<!DOCTYPE html>\n<!-- mxfp4-repack inspect -->\n";
constexpr std::string_view kStyle =
    "body{font:15px/1.5 sans-serif;color:#222;max-width:70em;margin:2em auto;padding:0 1em}"
    "h1{font-size:1.5em;overflow-wrap:break-word}h2{font-size:1.15em;margin-top:2em}"
    "table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.25em .7em;"
    "border-bottom:1px solid #ddd;vertical-align:top;overflow-wrap:break-word}"
    "td.n{text-align:right;white-space:nowrap}.yes{color:#06702b}.no{color:#777}"
    ".bar{background:#dde6f0;height:.8em;width:14em}.bar div{background:#2a6fb5;height:100%}"
    "code{font-size:.9em}details{margin:.4em 0}summary{cursor:pointer}.warn{color:#9a5b00}"
    "@media(prefers-color-scheme:dark){body{background:#181a1b;color:#ddd}th,td{border-color:#444}"
    ".bar{background:#333}.yes{color:#5fce86}.no{color:#999}.warn{color:#e5a84b}}";

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : visible(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string fact(std::string_view what, std::string_view value) {
  return fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", what, escaped(value));
}

double share(int64_t part, int64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string size_row(std::string_view what, const ByteSizes& size, int64_t all_data) {
  return fmt::format(
      "<tr><td>{}</td><td class=n>{}</td><td class=n>{}</td><td class=n>{:.3f}</td>"
      "<td><div class=bar><div style=\"width:{:.1f}%\"></div></div></td></tr>\n",
      what, human_bytes(size.data_bytes), human_bytes(size.stored_bytes), size.ratio(),
      100 * share(size.stored_bytes, all_data));
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
  std::string out =
      "<h2>Sizes</h2>\n<table><tr><th>kind</th><th>decoded</th><th>stored</th><th>ratio</th>"
      "<th>stored, as a share of all that is decoded</th></tr>\n";
  for (const auto& [kind, size] : kinds) out += size_row(kind, size, all.data_bytes);
  return out + size_row("all", all, all.data_bytes) + "</table>\n";
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
  out += fact("rules", fmt::format("{} (vLLM {})", first.revision, first.vllm_commit));
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
    out += fmt::format("<p class=warn>Warning: {}</p>\n", escaped(warning));
  }
  return out;
}

std::string decision_part(const Decision& decision) {
  std::string out = "<h2>Decision</h2>\n";
  if (decision.forced)
    return out + "<p>The backend was given: the engine's rules were not asked.</p>\n";
  out += "<table><tr><th>candidate</th><th>activations</th><th></th><th>reason</th></tr>\n";
  for (const TraceStep& step : decision.trace) {
    out += fmt::format("<tr><td><code>{}</code></td><td>{}</td><td class={}</td><td>{}</td></tr>\n",
                       escaped(step.candidate), escaped(step.key.value_or("")),
                       step.supported ? "yes>chosen" : "no>no", escaped(step.reason));
  }
  out += "</table>\n";
  for (const std::string& note : decision.notes) {
    out += fmt::format("<p class=warn>{}</p>\n", escaped(note));
  }
  return out;
}

std::string layer_part(int64_t layer, const std::string& rows, const ByteSizes& size) {
  return fmt::format(
      "<details><summary>Layer {}: {} decoded, {} stored</summary>\n<table><tr><th>tensor</th>"
      "<th>dtype</th><th>shape</th><th>decoded</th><th>stored</th><th>ratio</th></tr>\n{}</table>"
      "</details>\n",
      layer, human_bytes(size.data_bytes), human_bytes(size.stored_bytes), rows);
}

std::string tensors_part(const PageRank& rank) {
  std::string out = fmt::format("<h2>Tensors of {}</h2>\n", escaped(rank.directory));
  std::map<int64_t, std::string> rows;
  std::map<int64_t, ByteSizes> size;
  for (const LayerTensor& tensor : rank.tensors) {
    const std::string strides =
        tensor.strides.empty() ? "" : fmt::format(", strides {}", fmt::join(tensor.strides, ", "));
    rows[tensor.layer] += fmt::format(
        "<tr><td><code>{}</code></td><td>{}</td><td>{}{}</td><td class=n>{}</td>"
        "<td class=n>{}</td><td class=n>{:.3f}</td></tr>\n",
        escaped(tensor.name), tensor.dtype, fmt::join(tensor.shape, " × "), strides,
        human_bytes(tensor.data_bytes), human_bytes(tensor.stored_bytes), tensor.ratio());
    size[tensor.layer] += tensor;
  }
  for (const auto& [layer, text] : rows) out += layer_part(layer, text, size[layer]);
  return out;
}

}  // namespace

std::string blob_page(const fs::path& blob, const std::vector<PageRank>& ranks) {
  const std::string name = escaped(blob.string());
  std::string out(kFront);
  out += fmt::format(
      "<html lang=en><head><meta charset=utf-8>"
      "<meta name=viewport content=\"width=device-width\"><title>{}</title>\n<style>{}</style>"
      "</head>\n<body>\n<h1>{}</h1>\n",
      name, kStyle, name);
  out += facts(ranks) + sizes(ranks) + decision_part(ranks.front().manifest.decision);
  for (const PageRank& rank : ranks) out += tensors_part(rank);
  return out + "</body></html>\n";
}

void write_blob_page(const fs::path& file, const std::string& page) {
  std::error_code error;
  if (fs::exists(fs::symlink_status(file, error))) {
    std::string front(kFront.size(), '\0');
    std::ifstream(file, std::ios::binary)
        .read(front.data(), static_cast<std::streamsize>(front.size()));
    if (front != kFront) {
      throw Error::output("exists, and is not a page of this program")
          .in_file(file.string())
          .hint("name another file for --html");
    }
  }
  write_file_atomically(file, page);
}

}  // namespace mxfp4
