// The command line as plain values. Nothing below apps/ knows a flag.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/checksum/past_cache.hpp"
#include "formats/conversion/run_limits.hpp"
#include "lib/core/deployment_facts.hpp"

namespace mxfp4 {

// An argument as it was typed; a switch has no values.
struct GivenFlag {
  std::string name;  // "--arch", "INPUT"
  std::vector<std::string> values;
};

inline constexpr const char* kInputName = "INPUT";

// "--arch sm90", "--env 'A=b c'": the flags as a shell takes them; not the arguments without
// dashes.
[[nodiscard]] std::vector<std::string> as_typed(const std::vector<GivenFlag>& given);

// Throws Error::usage for an argument that is not in `useful`; `why` completes "has no effect ...".
void require_useful(const std::vector<GivenFlag>& given, const std::set<std::string>& useful,
                    const std::string& why, const std::string& hint = "");

// A small file that a flag names. It is read once, when its text is needed: it may be a pipe.
class FlagFile {
 public:
  FlagFile() = default;
  explicit FlagFile(std::filesystem::path path) : path_(std::move(path)) {}

  [[nodiscard]] bool empty() const { return path_.empty(); }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // Throws Error::input naming the file.
  [[nodiscard]] const std::string& text() const;

 private:
  std::filesystem::path path_;
  mutable std::optional<std::string> text_;
};

// The --target file: facts of the serving machine and process.
class TargetFile {
 public:
  TargetFile() = default;
  explicit TargetFile(std::filesystem::path path) : file_(std::move(path)) {}

  [[nodiscard]] const std::filesystem::path& path() const { return file_.path(); }
  // Empty without a file. Parsed once. Throws Error::input naming file and member.
  [[nodiscard]] const DeploymentFacts& facts() const;

 private:
  FlagFile file_;
  mutable std::optional<DeploymentFacts> facts_;
};

// Flags that describe the machine and process that will serve, as they were typed.
struct RequestFlags {
  std::string platform;
  std::string arch;
  TargetFile target_file;
  DeploymentFacts facts;  // of the table of deployment facts: what has a flag of its type
  std::string backend;
  std::string selector;
  std::string family;
  std::string quantization_config;
  std::string libs;
  std::vector<std::string> no_libs;
  std::vector<std::string> env;    // NAME=VALUE
  std::vector<std::string> knobs;  // NAME=VALUE
  std::string expert_placement;    // empty: linear
  std::optional<int64_t> rank;
  std::string pad;     // empty: auto
  std::string engine;  // "vllm", "sglang"; empty: what the revision's name means
  std::string revision;
  bool allow_known_defects = false;
  bool allow_unservable = false;
};

// "--knob tp_size": the number of serving ranks, for an input that is one rank's already. It is not
// a knob of a layout.
inline constexpr const char* kWorldKnob = "tp_size";
// The value of --libs that means no package.
inline constexpr const char* kNoLibs = "none";

struct InputOptions {
  std::filesystem::path path;
  std::string style;
  FlagFile model_config;
  std::string layers;  // "0-3,7"
};

struct ConvertOptions {
  InputOptions input;
  RequestFlags deployment;
  RunLimits resources{.threads = 0, .memory = 0};  // 0: the default
  std::filesystem::path output;
  std::string compress = "zstd";
  std::optional<int> level;  // of zstd; default 1
  std::string emit = "packed";
  bool include_rest = false;
  std::string shard;  // I/N; empty: no shard
  bool dry_run = false;
  bool resume = false;
  bool force = false;
  bool check = false;  // --resume reads every byte
};

struct FinalizeOptions {
  std::filesystem::path output;
  RunLimits resources{.threads = 0, .memory = 0};  // 0: the default
};

struct InspectOptions {
  std::vector<GivenFlag> given;
  InputOptions input;
  RequestFlags deployment;
  bool tensors = false;          // list the tensors of all layers
  bool serve = false;            // of a blob, only the engine's command
  std::optional<int64_t> layer;  // list the tensors of this layer
};

struct ExplainOptions {
  std::vector<GivenFlag> given;
  InputOptions input;  // path empty: only flags
  RequestFlags deployment;
  std::string against;  // releases, with commas between them, or "all"
  std::string batch;
};

struct VerifyOptions {
  std::filesystem::path blob;
  bool some_ranks = false;  // ranks may be missing
  ReadFrom from = ReadFrom::kCache;
  InputOptions against;                            // path empty: checksums only
  RunLimits resources{.threads = 0, .memory = 0};  // 0: the default
};

struct FitsOptions {
  std::filesystem::path blob;
  RequestFlags deployment;
  std::vector<GivenFlag> given;
};

struct DiffOptions {
  std::filesystem::path first;
  std::filesystem::path second;
};

struct UnpackOptions {
  std::filesystem::path blob;
  std::filesystem::path output;
  RunLimits resources{.threads = 0, .memory = 0};  // 0: the default
  bool as_published = false;  // the checkpoint's own names, types, shapes and shards
};

struct ListOptions {
  std::string what;
  std::string name;    // of one layout, or of a family of them; empty: all
  std::string engine;  // as RequestFlags::engine
  std::string revision;
};

}  // namespace mxfp4
