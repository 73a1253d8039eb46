// The interface that every container of tensors implements. checkpoint/open_source.hpp recognises
// the container by a file's content.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/os/file.hpp"
#include "lib/core/tensor.hpp"

namespace mxfp4 {

inline constexpr const char* kConfigName = "config.json";
// A larger config.json is refused.
inline constexpr int64_t kMaxConfigBytes = int64_t{16} << 20;

struct SourceTensor {
  std::string name;  // dotted, as in the checkpoint
  TensorSpec spec;
  std::string file;  // for messages
  // Where the bytes begin in `file`, if they lie there one behind another, as they are.
  std::optional<int64_t> file_offset{};
};

// A file of a checkpoint, without its directory.
struct SourceFile {
  std::string name;
  int64_t size = 0;
  std::string sha256{};  // as a hub gives it; empty: not known
  friend bool operator==(const SourceFile&, const SourceFile&) = default;
};

// The checkpoint behind a blob, whose tensors are stored in another form.
struct SourceOrigin {
  std::string kind;                 // of the checkpoint's container
  std::vector<SourceFile> files{};  // of the checkpoint
  std::string style{};              // by name, as it was found or given
  bool all_layers = true;           // false: some of the checkpoint's layers are not here
  std::map<std::string, std::string> samples{};  // of the checkpoint's layers, by prefix
  std::set<std::string> left_out{};  // experts' fields that it has and this source has not: "bias"
};

// What a source lists, without data.
struct SourceContents {
  std::string_view kind;            // a literal: "safetensors", "hdf5", "raw"
  std::vector<FileStatus> files{};  // every file that was opened, configuration included
  std::vector<SourceTensor> tensors{};
  // String attributes of the container: safetensors __metadata__, HDF5 root attributes, raw
  // manifest entries ("family", "w13_order", "layout", ...).
  std::map<std::string, std::string> attributes{};
  std::optional<std::string>
      config_json{};  // the text of the model's, if the container carries one
  // What the user should know of the container although it can be read.
  std::vector<std::string> warnings{};
  std::optional<SourceOrigin> origin{};  // of a source that is made from another one
};

// Everything about the tensors (names, dtypes, shapes, that their bytes lie inside the files) is
// validated when the source is opened; only reading the data can fail later. Errors are
// Error::input and name file and tensor. This class itself is a source without data, with which a
// conversion is decided.
class Source {
 public:
  explicit Source(SourceContents contents = {}) : contents_(std::move(contents)) {}
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;

  [[nodiscard]] const SourceContents& contents() const { return contents_; }
  [[nodiscard]] std::string_view kind() const { return contents_.kind; }
  [[nodiscard]] const std::vector<SourceTensor>& tensors() const { return contents_.tensors; }
  [[nodiscard]] const std::vector<FileStatus>& files() const { return contents_.files; }
  [[nodiscard]] const std::map<std::string, std::string>& attributes() const {
    return contents_.attributes;
  }
  [[nodiscard]] const std::optional<std::string>& config_json() const {
    return contents_.config_json;
  }
  [[nodiscard]] const std::vector<std::string>& warnings() const { return contents_.warnings; }
  // Null for a checkpoint.
  [[nodiscard]] const SourceOrigin* origin() const {
    return contents_.origin ? &*contents_.origin : nullptr;
  }

  // Copies bytes [offset, offset + out.size()) of tensor `index` (row-major, little-endian, dtype
  // as in its spec) to `out`. Offset and size are whole elements. Thread-safe.
  virtual void read(size_t index, int64_t offset, MutableBytes out);

  // Whether it lies on another machine, by its address.
  [[nodiscard]] bool is_far() const;
  // Whether it is worth to say what read() will be asked for.
  [[nodiscard]] virtual bool reads_ahead() const { return false; }

  // Says what read() will be asked for, behind what was said before: a far source fetches ahead. Only
  // if it reads_ahead(); expect_nothing() takes back what was said.
  virtual void expect(const Extent& range) const { (void)range; }

  // Bytes of memory that each thread in read() takes beside `out`, without schedules.
  [[nodiscard]] virtual int64_t read_bytes() const { return 0; }

  // Throws Error::input if one of files() no longer has the size and mtime that it had when the
  // source was opened: bytes read since then cannot be trusted.
  virtual void check_unchanged() const;

 protected:
  // Tensor `index`. Throws Error::internal unless it has the bytes [offset, offset + size).
  const SourceTensor& require_range(size_t index, int64_t offset, int64_t size) const;

  SourceContents contents_;
};

}  // namespace mxfp4
