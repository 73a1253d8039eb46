// The command line as plain values. Nothing below apps/ knows a flag.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "formats/checksum/past_cache.hpp"
#include "formats/conversion/run_limits.hpp"
#include "lib/core/deployment_facts.hpp"

namespace mxfp4 {

inline constexpr const char* kInputName = "INPUT";

// A small file that a flag names. It is read as the flag is parsed: it may be a pipe.
struct FlagFile {
  std::filesystem::path path;  // empty: not given
  std::string text;
};

// The --target file: facts of the serving machine and process.
struct TargetFile {
  std::filesystem::path path;  // empty: not given
  DeploymentFacts facts;
};

// INPUT and the flags that say which of its layers, and what will serve.
struct RequestFlags {
  std::filesystem::path path;  // empty: only flags
  FlagFile model_config;
  TargetFile target;
  // The others as they were typed, by their names with underscores: what read_request takes.
  nlohmann::json members = nlohmann::json::object();

  // The names of all that were given, as "--arch" and "INPUT", for commands that take only some.
  std::vector<std::string> given;

  // Throws Error::usage for one that is not in `useful`; `why` completes "has no effect ...".
  void require_useful(const std::set<std::string>& useful, const std::string& why,
                      const std::string& hint = "") const;
  // The flags as a shell takes them: "--arch sm90", "--env 'A=b c'".
  [[nodiscard]] std::vector<std::string> typed() const;
  // The value of a flag; empty if it was not given.
  [[nodiscard]] std::string text(const char* member) const { return members.value(member, ""); }
  // The names in --env.
  [[nodiscard]] std::vector<std::string> variables() const;
};

// The value of --quantization-config that the members activation_override and weight_override stand
// for; null if there are none.
[[nodiscard]] nlohmann::json override_in(const nlohmann::json& members);

// "tp_size" -> "--tp-size"
[[nodiscard]] std::string flag_of(std::string member);

struct ConvertOptions {
  RequestFlags input;
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
  RequestFlags input;
  bool tensors = false;          // list the tensors of all layers
  bool serve = false;            // of a blob, only the engine's command
  std::optional<int64_t> layer;  // list the tensors of this layer
};

struct ExplainOptions {
  RequestFlags input;
  std::string against;  // releases, with commas between them, or "all"
  std::string batch;
  std::optional<int64_t> nodes;  // show what a node of so many reads
};

struct VerifyOptions {
  std::filesystem::path blob;
  bool some_ranks = false;  // ranks may be missing
  ReadFrom from = ReadFrom::kCache;
  RequestFlags against;                            // path empty: checksums only
  RunLimits resources{.threads = 0, .memory = 0};  // 0: the default
};

struct FitsOptions {
  RequestFlags input;  // a blob
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
  std::string engine;  // "vllm", "sglang", or empty
  std::string revision;
};

}  // namespace mxfp4
