#include "formats/conversion/as_published.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/blob/layer_mark.hpp"
#include "formats/blob/manifest.hpp"
#include "formats/checksum/checksum.hpp"
#include "formats/conversion/rest_writer.hpp"
#include "formats/decision/opened_checkpoint.hpp"
#include "formats/os/atomic_file.hpp"
#include "formats/os/directory.hpp"
#include "formats/safetensors/safetensors_header.hpp"
#include "lib/exec/buffer.hpp"

namespace mxfp4 {
namespace {

// A shard, and its tensors' indices in the source.
struct PublishedShard {
  std::string name;
  std::vector<size_t> tensors;
};

// A tensor of a checkpoint that was not made of safetensors files has a file without that ending.
std::string shard_name(const std::string& file) {
  constexpr std::string_view kEnd = ".safetensors";
  return file.ends_with(kEnd) ? file : fmt::format("{}{}", file, kEnd);
}

// The shards that the checkpoint has, in the order of their first tensors.
std::vector<PublishedShard> shards_of(const Source& source) {
  std::vector<PublishedShard> shards;
  std::map<std::string, size_t> by_name;
  const std::vector<SourceTensor>& tensors = source.tensors();
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto [found, added] = by_name.try_emplace(tensors[i].file, shards.size());
    if (added) shards.push_back({shard_name(tensors[i].file), {}});
    shards[found->second].tensors.push_back(i);
  }
  return shards;
}

std::string shard_header(const Source& source, const PublishedShard& shard,
                         const std::string& mark) {
  std::map<std::string, std::string> metadata = source.attributes();
  metadata["format"] = "pt";
  metadata[kUnpackedMark] = mark;
  std::vector<SafetensorsTensor> tensors;
  for (const size_t index : shard.tensors) {
    append_tensor(tensors, source.tensors()[index].name, source.tensors()[index].spec);
  }
  return make_safetensors_header(tensors, metadata, kSafetensorsAlignment);
}

int64_t write_shard(Source& source, const PublishedShard& shard, const std::string& mark,
                    const Directory& directory, const RunHooks& hooks, ReadBack read_back) {
  AtomicFile file(directory, shard.name);
  Checksum sum;
  const auto append = [&](ConstBytes bytes) {
    if (read_back == ReadBack::kYes) sum.update(bytes);
    file.append(bytes);
  };
  const std::string header = shard_header(source, shard, mark);
  append(std::as_bytes(std::span(header)));
  Buffer buffer;
  for (const size_t index : shard.tensors) {
    read_tensor(source, index, buffer, [&](ConstBytes piece) {
      hooks.check_stop();
      append(piece);
      hooks.progress(static_cast<int64_t>(piece.size()));
    });
  }
  commit_summed(file, sum.hex(), read_back, [&] { hooks.writes(file); });
  return file.size();
}

std::string index_text(const Source& source, const std::vector<PublishedShard>& shards) {
  nlohmann::json map = nlohmann::json::object();  // sorted by name, as the hub's are
  for (const PublishedShard& shard : shards) {
    for (const size_t index : shard.tensors) map[source.tensors()[index].name] = shard.name;
  }
  nlohmann::ordered_json json;
  json["metadata"]["total_size"] = published_bytes(source);
  json["weight_map"] = map;
  return json.dump(2) + "\n";
}

}  // namespace

int64_t published_bytes(const Source& source) {
  int64_t total = 0;
  for (const SourceTensor& tensor : source.tensors()) total += tensor.spec.bytes();
  return total;
}

RestoreResult write_as_published(Source& source, const std::string& mark,
                                 const Directory& directory, const RunHooks& hooks,
                                 ReadBack read_back) {
  RestoreResult result;
  const std::vector<PublishedShard> shards = shards_of(source);
  for (const PublishedShard& shard : shards) {
    result.bytes += write_shard(source, shard, mark, directory, hooks, read_back);
    ++result.files;
  }
  const auto write = [&](std::string_view name, const std::string& text) {
    write_summed(directory, std::string(name), text, read_back, hooks.writes);
  };
  write(kIndexName, index_text(source, shards));
  if (const auto config = source.config_json()) {
    write(kConfigName, *config);
  }
  source.check_unchanged();
  return result;
}

}  // namespace mxfp4
