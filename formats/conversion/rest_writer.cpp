#include "formats/conversion/rest_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <system_error>

#include "formats/blob/blob_reader.hpp"
#include "formats/checksum/checksum.hpp"
#include "formats/os/atomic_file.hpp"
#include "formats/os/file.hpp"
#include "formats/remote/files_at.hpp"
#include "formats/safetensors/safetensors_header.hpp"
#include "formats/source/natural_order.hpp"
#include "lib/core/checked.hpp"
#include "lib/core/dtype.hpp"
#include "lib/core/error.hpp"
#include "lib/exec/buffer.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kCopyPiece = int64_t{8} << 20;

// What lies beside the weights, where a server does not list its files.
constexpr std::array kUsualNames = {"chat_template.jinja",
                                    "generation_config.json",
                                    "merges.txt",
                                    "special_tokens_map.json",
                                    "tokenizer.json",
                                    "tokenizer.model",
                                    "vocab.json",
                                    "tokenizer_config.json",
                                    "processor_config.json",
                                    "added_tokens.json",
                                    "tiktoken.model",
                                    "preprocessor_config.json"};

// At least the bytes that one tensor takes in a header: up to six for each byte of its name
// (\u00XX), two offsets, eight dimensions.
int64_t header_bound(const SourceTensor& tensor) {
  return 6 * static_cast<int64_t>(tensor.name.size()) + 320;
}

void finish_file(RestFile& file, const Source& source, size_t number) {
  file.name = fmt::format("rest-{:05}.safetensors", number);
  std::ranges::stable_sort(file.tensors, std::greater{}, [&](size_t index) {
    return dtype_bits(source.tensors()[index].spec.dtype);
  });
  std::vector<SafetensorsTensor> tensors;
  for (size_t index : file.tensors) {
    append_tensor(tensors, source.tensors()[index].name, source.tensors()[index].spec);
  }
  file.header = make_safetensors_header(tensors, {{"format", "pt"}}, kSafetensorsAlignment);
}

SideFile make_index(const Source& source, const std::vector<RestFile>& files) {
  nlohmann::json map = nlohmann::json::object();
  int64_t total = 0;
  for (const RestFile& file : files) {
    for (size_t index : file.tensors) map[source.tensors()[index].name] = file.name;
    total += file.data_bytes;
  }
  auto json = nlohmann::ordered_json::object();
  json["metadata"] = {{"total_size", total}};
  json["weight_map"] = map;
  SideFile index{.name = std::string(kIndexName), .from = {}, .text = json.dump(2) + "\n"};
  index.size = static_cast<int64_t>(index.text.size());
  return index;
}

bool is_weights_or_index(const std::string& name) {
  static constexpr std::array<std::string_view, 13> kSuffixes = {
      ".safetensors", ".bin",  ".pt",   ".pth", ".ckpt", ".h5",        ".hdf5",
      ".msgpack",     ".gguf", ".onnx", ".npz", ".zst",  ".index.json"};
  return std::ranges::any_of(kSuffixes,
                             [&](std::string_view suffix) { return name.ends_with(suffix); });
}

bool is_side_name(const std::string& name) {
  return !name.starts_with('.') && !is_weights_or_index(name) && name != kManifestName;
}

// Whether a link's target is a file of the checkpoint, or, from a hub cache's snapshots/, one of
// the same repository's blobs/.
bool stays_inside(const fs::path& checkpoint, const fs::path& target) {
  std::error_code error;
  const fs::path blobs = target.parent_path();
  if (blobs == fs::canonical(checkpoint, error)) return true;
  if (blobs.filename() != "blobs") return false;
  const fs::path snapshots = blobs.parent_path() / "snapshots";
  const fs::path inside = fs::canonical(checkpoint, error).lexically_relative(snapshots);
  return !error && !inside.empty() && *inside.begin() != "..";
}

// The file to copy, behind a link if the entry is one; empty for directories. Throws for anything
// else that is not a regular file, and for a link to a file that is not the checkpoint's.
fs::path side_file(const fs::path& checkpoint, const fs::directory_entry& entry) {
  std::error_code error;
  if (entry.is_directory(error)) return {};
  if (!entry.is_symlink(error)) {
    if (entry.is_regular_file(error)) return entry.path();
    throw Error::input("not a regular file, so it is not copied")
        .in_file(entry.path().string())
        .hint("put a regular file in its place, or remove it");
  }
  fs::path target = fs::canonical(entry.path(), error);
  if (!error && fs::is_regular_file(target, error) && stays_inside(checkpoint, target)) {
    return target;
  }
  throw Error::input(fmt::format("a link to {}, which is not copied",
                                 fs::read_symlink(entry.path(), error).string()))
      .in_file(entry.path().string())
      .hint("put the file itself in the place of the link");
}

// Refuses a name that a file of the model directory cannot have.
void refuse_name(const fs::path& path) {
  const std::string name = path.filename().string();
  if (name == kBlobFolder || is_rank_directory(name)) {
    throw Error::input("not copied, a folder of the blob has this name")
        .in_file(path.string())
        .hint("rename or remove the file");
  }
  if (name.size() > kMaxAtomicName) {
    throw Error::input(fmt::format("not copied, its name has {} bytes, {} is the most", name.size(),
                                   kMaxAtomicName))
        .in_file(path.string())
        .hint("rename or remove the file");
  }
}

// Writes one file and its checksum.
class SummedFile {
 public:
  SummedFile(const Directory& directory, const std::string& name)
      : name_(name), file_(directory, name) {}
  void append(ConstBytes bytes) {
    sum_.update(bytes);
    file_.append(bytes);
  }
  void commit(const RestHooks& hooks) {
    const ManifestFile entry{name_, file_.size(), sum_.hex()};
    file_.commit([&] { hooks.finished(entry); });
    hooks.named();
  }

 private:
  std::string name_;
  AtomicFile file_;
  Checksum sum_;
};

// Calls `each_piece` with the tensor's bytes, in order and in bounded memory. Throws Error::input.
void read_tensor(Source& source, size_t index, Buffer& buffer,
                 const std::function<void(ConstBytes)>& each_piece) {
  const TensorSpec& spec = source.tensors()[index].spec;
  const int64_t bytes = spec.bytes();
  if (bytes == 0) return;
  // Pieces are whole rows if rows fit, so that a chunked source decodes no chunk twice needlessly.
  const int64_t rows = spec.shape.rank() == 0 ? 1 : spec.shape[0];
  const int64_t row = bytes / rows;
  const int64_t step = row < kCopyPiece ? kCopyPiece / row * row : kCopyPiece;
  for (int64_t at = 0; at < bytes; at += step) {
    const MutableBytes piece = buffer.get(std::min(step, bytes - at));
    source.read(index, at, piece);
    each_piece(piece);
  }
}

// The bytes of a small file, as they are written. Throws Error::input, also if the file is not the
// one that was planned.
std::string read_side(const SideFile& plan) {
  if (plan.from.empty()) return plan.text;
  return in_file(plan.from.string(), [&] { return read_same_file(plan.seen); });
}

// Says that all of the file's tensors will be read.
void expect_tensors(Source& source, const RestFile& plan) {
  if (!source.reads_ahead()) return;
  expect_nothing();
  for (const size_t index : plan.tensors) {
    source.expect({index, 0, source.tensors()[index].spec.bytes()});
  }
}

void write_tensors(Source& source, const RestFile& plan, const Directory& directory, Buffer& buffer,
                   const RestHooks& hooks) {
  expect_tensors(source, plan);
  SummedFile file(directory, plan.name);
  file.append(std::as_bytes(std::span(plan.header)));
  for (size_t index : plan.tensors) {
    read_tensor(source, index, buffer, [&](ConstBytes piece) {
      file.append(piece);
      hooks.progress(static_cast<int64_t>(piece.size()));
    });
  }
  file.commit(hooks);
}

void write_side(const SideFile& plan, const Directory& directory, const RestHooks& hooks) {
  const std::string text = read_side(plan);
  SummedFile file(directory, plan.name);
  file.append(std::as_bytes(std::span(text)));
  file.commit(hooks);
}

}  // namespace

std::vector<ManifestFile> RestPlan::planned() const {
  std::vector<ManifestFile> entries;
  for (const RestFile& file : files) {
    entries.push_back({file.name, static_cast<int64_t>(file.header.size()) + file.data_bytes, ""});
  }
  for (const SideFile& file : side) entries.push_back({file.name, file.size, ""});
  return entries;
}

void RestPlan::check_unchanged() const {
  for (const SideFile& file : side) {
    if (file.from.empty()) continue;
    in_file(file.from.string(), [&] {
      require_same(file.seen, InputFile(file.seen.path, /*wait=*/false, /*follow=*/false).status());
    });
  }
}

int64_t RestPlan::bytes() const {
  int64_t total = 0;
  for (const ManifestFile& file : planned()) total = checked_add(total, file.size);
  return total;
}

RestPlan plan_rest(const Source& source, const std::vector<size_t>& rest, int64_t max_file) {
  RestPlan plan;
  int64_t room = 0;
  for (size_t index : rest) {
    const SourceTensor& tensor = source.tensors()[index];
    const int64_t bytes = tensor.spec.bytes();
    const int64_t needed = checked_add(bytes, header_bound(tensor));
    if (plan.files.empty() || needed > room) {
      plan.files.emplace_back();
      room = max_file - 2 * kSafetensorsAlignment;
    }
    plan.files.back().tensors.push_back(index);
    plan.files.back().data_bytes = checked_add(plan.files.back().data_bytes, bytes);
    room -= needed;
  }
  for (size_t i = 0; i < plan.files.size(); ++i) finish_file(plan.files[i], source, i + 1);
  if (!plan.files.empty()) plan.side.push_back(make_index(source, plan.files));
  return plan;
}

std::vector<SideFile> find_side_files(const fs::path& checkpoint,
                                      std::vector<std::string>& warnings) {
  std::vector<SideFile> files;
  std::error_code error;
  for (fs::directory_iterator at(checkpoint, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!is_side_name(name)) continue;
    const fs::path target = side_file(checkpoint, *at);
    if (target.empty()) continue;
    // Without following links: what is a file now may be a link to any of the user's files later.
    const FileStatus file = in_file(at->path().string(), [&] {
      return InputFile(target, /*wait=*/false, /*follow=*/false).status();
    });
    if (file.size > kMaxSideFile) {
      warnings.push_back(fmt::format("{}: {} bytes, not copied", name, file.size));
      continue;
    }
    refuse_name(at->path());
    files.push_back(
        {.name = name, .from = at->path(), .text = {}, .size = file.size, .seen = file});
  }
  if (error) throw Error::input(error.message()).in_file(checkpoint.string());
  std::ranges::sort(files, {}, &SideFile::name);
  return files;
}

std::vector<SideFile> fetch_side_files(const fs::path& checkpoint,
                                       std::vector<std::string>& warnings) {
  std::vector<SideFile> files;
  bool complete = true;
  std::vector<std::string> names = names_at(checkpoint, &complete);
  if (!complete) names.assign(kUsualNames.begin(), kUsualNames.end());
  for (const std::string& name : names) {
    const fs::path path = checkpoint / name;
    if (!is_side_name(name) || (!complete && !is_listed_at(path))) continue;
    if (status_at(path).size > kMaxSideFile) {
      warnings.push_back(fmt::format("{}: too large, not copied", name));
      continue;
    }
    refuse_name(name);
    files.push_back({.name = name, .from = {}, .text = text_at(path, kMaxSideFile)});
    files.back().size = static_cast<int64_t>(files.back().text.size());
  }
  if (!complete) {
    warnings.emplace_back(
        "the server does not list its files: of those beside the weights, only such with the usual "
        "names are copied");
  }
  std::ranges::sort(files, {}, &SideFile::name);
  return files;
}

std::vector<ManifestFile> sum_rest(Source& source, const RestPlan& plan,
                                   const std::function<void()>& between) {
  std::vector<ManifestFile> entries = plan.planned();
  Buffer buffer;
  auto entry = entries.begin();
  for (const RestFile& file : plan.files) {
    Checksum sum;
    sum.update(std::as_bytes(std::span(file.header)));
    expect_tensors(source, file);
    for (const size_t index : file.tensors) {
      read_tensor(source, index, buffer, [&](ConstBytes piece) {
        between();
        sum.update(piece);
      });
    }
    (entry++)->xxh3_128 = sum.hex();
  }
  for (const SideFile& file : plan.side) (entry++)->xxh3_128 = checksum_of(read_side(file));
  return entries;
}

void write_rest(Source& source, const RestPlan& plan, const Directory& directory,
                const RestHooks& hooks) {
  Buffer buffer;
  for (const RestFile& file : plan.files) {
    if (!hooks.kept(file.name)) write_tensors(source, file, directory, buffer, hooks);
  }
  for (const SideFile& file : plan.side) {
    if (!hooks.kept(file.name)) write_side(file, directory, hooks);
  }
}

}  // namespace mxfp4
