#include "formats/checkpoint/described_source.hpp"

#include <utility>

#include "lib/core/error.hpp"
#include "lib/load/describe_published.hpp"

namespace mxfp4 {
namespace {

class DescribedSource final : public Source {
 public:
  explicit DescribedSource(const Manifest& manifest)
      : manifest_(manifest), origin_(origin_of(manifest)) {
    for (const ManifestLayer& layer : manifest.layers) {
      if (!layer.published) {
        throw Error::input("does not say how its checkpoint names the experts");
      }
      for (NamedTensor& tensor : published_tensors(layer.prefix, *layer.published)) {
        tensors_.push_back({std::move(tensor.name), tensor.spec, std::move(tensor.file), {}});
      }
    }
  }

  [[nodiscard]] std::string_view kind() const override { return "manifest"; }
  [[nodiscard]] const std::vector<SourceTensor>& tensors() const override { return tensors_; }
  void read(size_t /*index*/, int64_t /*offset*/, MutableBytes /*out*/) override {
    throw Error::internal("a manifest holds no weights");
  }
  [[nodiscard]] const std::map<std::string, std::string>& attributes() const override {
    return manifest_.checkpoint.attributes;
  }
  [[nodiscard]] std::optional<std::string> config_json() const override {
    return manifest_.checkpoint.config;
  }
  [[nodiscard]] const std::vector<FileStatus>& files() const override { return files_; }
  [[nodiscard]] const SourceOrigin* origin() const override { return &origin_; }

 private:
  const Manifest& manifest_;
  SourceOrigin origin_;
  std::vector<SourceTensor> tensors_;
  std::vector<FileStatus> files_;
};

}  // namespace

std::shared_ptr<Source> open_described_source(const Manifest& manifest) {
  return std::make_shared<DescribedSource>(manifest);
}

SourceOrigin origin_of(const Manifest& manifest) {
  SourceOrigin origin{.kind = manifest.source.kind,
                      .files = manifest.source.files,
                      .style = manifest.style,
                      .all_layers = manifest.all_layers,
                      .left_out = manifest.checkpoint.left_out};
  for (const ManifestLayer& layer : manifest.layers) {
    if (layer.published) origin.samples.emplace(layer.prefix, layer.published->sample);
  }
  return origin;
}

}  // namespace mxfp4
