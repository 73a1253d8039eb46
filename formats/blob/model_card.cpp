#include "formats/blob/model_card.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <set>
#include <system_error>

#include "formats/checksum/checksum.hpp"
#include "formats/os/atomic_file.hpp"
#include "lib/core/error.hpp"
#include "lib/core/human_bytes.hpp"
#include "lib/core/parallel_text.hpp"
#include "lib/revisions/revisions.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFront = "---\nlibrary_name: ";
constexpr std::string_view kTags =
    "\ntags:\n"
    "- mxfp4\n"
    "- mxfp4-repack\n"
    "---\n\n";
constexpr std::string_view kSealFront = "\n<!-- mxfp4-repack: XXH3-128 of the text above: ";
constexpr std::string_view kSealBack = " -->\n";
constexpr int64_t kLargestCard = int64_t{16} << 20;
constexpr size_t kMostFiles = 100;

// Escapes text from an input for a cell of a table, so that none of it is markup.
std::string cell(std::string_view text) {
  static constexpr std::string_view kMarkup = "&<>|`[]*_\\~#!";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || kMarkup.find(c) != std::string_view::npos) {
      out += fmt::format("&#{};", byte);
    } else {
      out += c;
    }
  }
  return out;
}

std::string row(std::string_view what, std::string_view value) {
  return fmt::format("| {} | {} |\n", what, value);
}

std::string padded(int64_t from, int64_t to) {
  return from == to ? fmt::format("{}", to) : fmt::format("{}, padded to {}", from, to);
}

std::string facts(const std::vector<Manifest>& manifests) {
  const Manifest& first = manifests.front();
  std::string out = "| | |\n| --- | --- |\n";
  out += row("backend", first.decision.backend ? backend_name(*first.decision.backend)
                                               : backend_name(first.target.backend));
  out += row("layout", cell(first.layout));
  out += row("machine",
             cell(fmt::format("{} {}", platform_name(first.target.platform), first.target.arch)));
  out += row(fmt::format("rules of {}", engine_title(first.engine)), cell(first.revision));
  for (const auto& [release, backend] : first.also_serves) {
    const bool vllm = engine_of_revision(release) == Engine::kVllm;
    out += row("also serves",
               cell(fmt::format("{}, {} {}", release,
                                vllm ? "--moe-backend" : "--moe-runner-backend", backend)));
  }
  if (!first.kernel_library.empty()) out += row("kernel library", cell(first.kernel_library));
  out += row("ranks", fmt::format("{} ({})", first.rank.num_ranks, parallel_text(first.parallel)));
  out += row("layers", fmt::format("{}", first.layers.size()));
  if (!first.layers.empty()) {
    const ManifestLayer& layer = first.layers.front();
    out += row("experts of a rank", fmt::format("{}", layer.loaded.dims.num_experts));
    out += row("hidden size", padded(layer.hidden_size, layer.loaded.dims.hidden_size));
    out += row("intermediate size of a rank",
               padded(first.rank.end - first.rank.begin, layer.loaded.dims.intermediate_size));
  }
  out += row("size", human_bytes(stored_bytes(manifests)));
  out += row("made by", cell(fmt::format("mxfp4-repack {}", first.tool_version)));
  return out;
}

std::string sources(const SourceSummary& source) {
  std::string out = fmt::format("Made from these files ({}):\n\n| file | size |\n| --- | --- |\n",
                                cell(source.kind));
  for (size_t i = 0; i < source.files.size() && i < kMostFiles; ++i) {
    out += row(cell(source.files[i].first), human_bytes(source.files[i].second));
  }
  if (source.files.size() > kMostFiles) {
    out += row(fmt::format("and {} more", source.files.size() - kMostFiles), "");
  }
  return out;
}

std::string serve_commands(Engine engine, bool model_directory) {
  // A model directory with its rest is vLLM's form.
  const bool own = engine == Engine::kVllm && model_directory;
  std::string_view serve =
      own ? "vllm serve MODEL_DIRECTORY --load-format mxfp4_repack\n"
          : "vllm serve MODEL --load-format mxfp4_repack --model-loader-extra-config "
            "'{\"blob\": \"THIS_DIRECTORY\"}'\n";
  if (engine == Engine::kSglang) {
    serve =
        "MXFP4_REPACK_BLOB=THIS_DIRECTORY MXFP4_REPACK_SKIP_RAW=1 \\\n"
        "  python -m sglang.launch_server --model-path MODEL\n";
  }
  return fmt::format(
      "```\npip install ./mxfp4_repack-*.whl   # into {0}'s environment\n{1}```\n\n"
      "The wheel is attached to the releases of mxfp4-repack; in a clone of its source,\n"
      "`pip install ./scripts/python` builds and installs it.\n\n"
      "{2}"
      "The plug-in compares the blob with the running engine. Where they differ, {0} converts the\n"
      "checkpoint's own experts and says why.\n\n",
      engine_title(engine), serve,
      own ? "MODEL_DIRECTORY is the directory around this one.\n\n"
          : "MODEL is the checkpoint that the blob was made from.\n\n");
}

std::string commands(const Manifest& blob) {
  return fmt::format(
      "## Serve\n\n"
      "{}"
      "## Verify\n\n"
      "```\nmxfp4-repack verify THIS_DIRECTORY\n"
      "mxfp4-repack verify THIS_DIRECTORY --against MODEL\n```\n\n"
      "The second command makes every byte again from the checkpoint. A checksum shows damage, not "
      "who\n"
      "made the blob.\n\n"
      "## Upload\n\n"
      "```\nhf upload OWNER/NAME THIS_DIRECTORY\n```\n",
      serve_commands(blob.engine, !blob.rest.empty()));
}

std::string warnings(const std::vector<Manifest>& manifests) {
  std::set<std::string> all;
  for (const Manifest& manifest : manifests) {
    all.insert(manifest.warnings.begin(), manifest.warnings.end());
  }
  if (all.empty()) return "";
  std::string out = "\n## Warnings of the conversion\n\n";
  for (const std::string& warning : all) out += fmt::format("- {}\n", cell(warning));
  return out;
}

}  // namespace

std::string model_card(const std::vector<Manifest>& manifests) {
  const Manifest& first = manifests.front();
  std::string text = fmt::format("{}{}{}", kFront, engine_name(first.engine), kTags);
  text += fmt::format(
      "# Repacked experts for {} on {}\n\n"
      "The expert weights of an MXFP4 Mixture-of-Experts checkpoint, in the byte order that the\n"
      "serving kernel reads. They serve the machine and the engine named here, and no others.\n\n",
      backend_name(first.target.backend), cell(first.target.arch));
  text += facts(manifests) + "\n" + sources(first.source) + "\n" + commands(first);
  text += warnings(manifests);
  const std::string sum = checksum_of(text);
  text += kSealFront;
  text += sum;
  text += kSealBack;
  return text;
}

bool is_model_card(std::string_view text) {
  const size_t seal = text.rfind(kSealFront);
  if (!text.starts_with(kFront) || seal == std::string_view::npos) return false;
  std::string expected(kSealFront);
  expected += checksum_of(text.substr(0, seal));
  expected += kSealBack;
  return text.substr(seal) == expected;
}

bool is_model_card_file(const fs::path& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (error || size > static_cast<uintmax_t>(kLargestCard)) return false;
  std::ifstream file(path, std::ios::binary);
  return is_model_card(std::string(std::istreambuf_iterator<char>(file), {}));
}

fs::path write_model_card(const std::vector<fs::path>& blobs,
                          const std::vector<Manifest>& manifests) {
  const bool ranks = rank_directory(manifests.front().rank) != ".";
  fs::path path = (ranks ? blobs.front().parent_path() : blobs.front()) / kModelCardName;
  std::error_code error;
  if (fs::exists(fs::symlink_status(path, error)) && !is_model_card_file(path)) {
    throw Error::output("is not a model card of this program, or was edited")
        .in_file(path.string())
        .hint("take that file out of the directory");
  }
  write_file_atomically(Directory(path.parent_path()), path.filename().string(),
                        model_card(manifests));
  return path;
}

}  // namespace mxfp4
