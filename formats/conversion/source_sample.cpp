#include "formats/conversion/source_sample.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/checksum/checksum.hpp"
#include "formats/remote/files_at.hpp"
#include "lib/exec/run_on_threads.hpp"
#include "lib/load/describe_published.hpp"

namespace mxfp4 {
namespace {

constexpr int64_t kSampleStep = 64;  // a multiple of every element's size

using Tensors = std::unordered_map<std::string_view, size_t>;

// A layer to sample: what it is called, and how the checkpoint stores it.
struct Sampled {
  std::string_view prefix;
  const PublishedLayer* published;
};

Tensors by_name(const Source& source) {
  Tensors tensors;
  for (size_t i = 0; i < source.tensors().size(); ++i) {
    tensors.emplace(source.tensors()[i].name, i);
  }
  return tensors;
}

uint64_t number_of(std::string_view digits) {
  uint64_t number = 0;
  (void)std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
  return number;
}

// The sample of a layer; empty if the source has another tensor, or none, in place of one of the
// layer's.
std::string sample_of(Source& source, const Tensors& tensors, const Sampled& layer) {
  constexpr size_t kDigits = 16;
  const auto experts = static_cast<uint64_t>(layer.published->experts);
  std::vector<PublishedTensor> sorted = layer.published->tensors;
  std::ranges::sort(sorted, {}, &PublishedTensor::tail);
  std::string text = checksum_of(layer.prefix);  // the digest, and behind it the bytes
  for (const PublishedTensor& each : sorted) {
    const int64_t total = each.spec.bytes();
    const int64_t size = std::min(total, kSampleBytes);
    const int64_t starts = (total - size) / kSampleStep + 1;
    for (int place = 0; place < kSamplePlaces; ++place) {
      const uint64_t expert = number_of(std::string_view(text).substr(0, kDigits));
      const uint64_t start = number_of(std::string_view(text).substr(kDigits));
      const auto found = tensors.find(
          experts == 0 ? fmt::format("{}.{}", layer.prefix, each.tail)
                       : fmt::format("{}.{}.{}", layer.prefix, expert % experts, each.tail));
      if (found == tensors.end() || source.tensors()[found->second].spec.bytes() != total)
        return "";
      const size_t digest = text.size();
      text.resize(digest + static_cast<size_t>(size));
      const MutableBytes bytes = std::as_writable_bytes(std::span(text)).subspan(digest);
      const auto offset = static_cast<int64_t>(start % static_cast<uint64_t>(starts)) * kSampleStep;
      if (!bytes.empty()) source.read(found->second, offset, bytes);
      text = checksum_of(text);
    }
  }
  return text;
}

std::vector<std::string> samples_of(Source& source, const std::vector<Sampled>& layers) {
  constexpr int kThreads = 16;  // they wait for a disk, not for a processor
  struct Nothing {};
  const Tensors tensors = by_name(source);
  std::vector<std::string> samples(layers.size());
  run_on_threads<Nothing>(kThreads, layers.size(), [&](size_t layer, Nothing&) {
    samples[layer] = sample_of(source, tensors, layers[layer]);
  });
  return samples;
}

// The first file with experts whose SHA-256 is known of both and differs.
std::optional<std::string> other_file(const Manifest& manifest, const Source& source) {
  std::map<std::string, std::string> there;  // SHA-256 by name
  for (const FileStatus& file : source.files()) {
    there.emplace(file.path.filename().string(), sha256_at(file.path));
  }
  const auto holds_experts = [&](const std::string& name) {
    return std::ranges::any_of(manifest.layers, [&](const ManifestLayer& layer) {
      return layer.published &&
             std::ranges::find(layer.published->runs, name, &PublishedRun::file) !=
                 layer.published->runs.end();
    });
  };
  for (const SourceFile& file : manifest.source.files) {
    const std::string& sha256 = there[file.name];
    if (file.sha256.empty() || sha256.empty() || file.sha256 == sha256) continue;
    if (holds_experts(file.name)) {
      return fmt::format("{} is not the one that was converted", file.name);
    }
  }
  return std::nullopt;
}

}  // namespace

void take_samples(ModelLayers& model, Source& source) {
  std::vector<Sampled> layers;
  std::vector<PublishedLayer*> published;
  for (ExpertLayer& layer : model.layers) {
    if (!layer.published || !layer.published->sample.empty()) continue;
    layers.push_back({layer.prefix, &*layer.published});
    published.push_back(&*layer.published);
  }
  const std::vector<std::string> samples = samples_of(source, layers);
  for (size_t i = 0; i < samples.size(); ++i) published[i]->sample = samples[i];
}

bool has_samples(const Manifest& manifest) {
  return std::ranges::all_of(manifest.layers, [](const ManifestLayer& layer) {
    return layer.published && !layer.published->sample.empty();
  });
}

std::optional<std::string> checkpoint_difference(const Manifest& manifest, Source& source) {
  if (auto file = other_file(manifest, source)) return file;
  std::vector<Sampled> layers;
  std::vector<const ManifestLayer*> of;
  for (const ManifestLayer& layer : manifest.layers) {
    if (!layer.published || layer.published->sample.empty()) continue;
    layers.push_back({layer.prefix, &*layer.published});
    of.push_back(&layer);
  }
  const std::vector<std::string> samples = samples_of(source, layers);
  for (size_t i = 0; i < samples.size(); ++i) {
    if (samples[i] == layers[i].published->sample) continue;
    return fmt::format("layer {} is not the one that was converted", of[i]->index);
  }
  return std::nullopt;
}

}  // namespace mxfp4
