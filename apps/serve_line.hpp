// The engine's command that serves a model with the deployment that was asked for: the end of the
// road for who converts, explains or inspects.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "apps/console.hpp"
#include "formats/blob/manifest.hpp"
#include "formats/checkpoint/open_source.hpp"
#include "lib/core/deployment.hpp"

namespace mxfp4 {

// What is served, and from what.
struct Served {
  Engine engine = Engine::kVllm;
  std::string_view asked;        // Manifest::asked
  std::string model;             // as a shell takes it
  std::filesystem::path blob{};  // empty: the weights are made at each start
  bool found = false;            // the plug-in finds the blob without its name
  bool compared = true;          // false: the blob's checkpoint is not made of safetensors
};

// What the engine calls a checkpoint: a path, or a hub's model without the scheme of its address. Any
// other address is the placeholder MODEL, since the engine starts from a directory.
[[nodiscard]] std::string served_name(const std::filesystem::path& model);

// The parts of the command, the variables of its process first. Flags are those of vllm serve and of
// sglang.launch_server (vllm/engine/arg_utils.py, sglang/srt/server_args.py), the plug-in's of
// scripts/python/VLLM.md and SGLANG.md.
[[nodiscard]] std::vector<std::string> serve_line(const Served& served);

// The same for a blob at `path`, or in the model directory at `path`. The model is what the blob lies
// beside or in, else `model`, else the placeholder MODEL. Empty if the engine does not take the blob.
[[nodiscard]] std::vector<std::string> serve_line(const Manifest& manifest,
                                                  const std::filesystem::path& path,
                                                  const std::filesystem::path& model = {});

// `path`, if an engine loads a checkpoint of this source from there; else empty.
[[nodiscard]] std::filesystem::path model_to_serve(const Source& source,
                                                   const std::filesystem::path& path);

// Says it as the last word of a command, in lines that a shell puts together; nothing without parts.
void say_serve(const std::vector<std::string>& parts, const Console& console);

}  // namespace mxfp4
