// The backends and the two converter families of vLLM's MXFP4 MoE oracle
// (vllm/model_executor/layers/fused_moe/oracle/mxfp4.py), spelled as there so that a grep finds
// both sides. A revision has a row for those that it knows. The last two are not the oracle's: a
// model asks for them by itself, and they are spelled as the engine's --moe-backend in capitals.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace mxfp4 {

// The serving engines whose rules are known.
enum class Engine : uint8_t { kVllm, kSglang };
[[nodiscard]] std::string_view engine_name(Engine engine);   // "vllm", "sglang"
[[nodiscard]] std::string_view engine_title(Engine engine);  // "vLLM", "SGLang"
[[nodiscard]] std::optional<Engine> engine_from_name(std::string_view name);
// The engine that a revision's name means: SGLang for "sglang-...", else vLLM.
[[nodiscard]] Engine engine_of_revision(std::string_view name);

enum class Backend : uint8_t {
  NONE,
  B12X_MXFP4_MXFP8,
  B12X_MXFP4_BF16,
  DEEPGEMM_MXFP4,
  FLASHINFER_TRTLLM_MXFP4_MXFP8,
  FLASHINFER_TRTLLM_MXFP4_BF16,
  FLASHINFER_CUTLASS_MXFP4_MXFP8,
  FLASHINFER_CUTLASS_MXFP4_BF16,
  CUTLASS_MXFP4_MXFP4,
  BATCHED_MARLIN,
  MARLIN,
  AITER_MXFP4_BF16,
  AITER_TRITON_MXFP4_BF16,
  AITER_MXFP4_FP8,
  AITER_MXFP4_MXFP4,
  AITER_TRITON_MXFP4_MXFP4,
  TRITON,
  TRITON_UNFUSED,
  XPU,
  CPU,
  EMULATION,
  HUMMING,
  FLASHINFER_MOE_EP_CUTEDSL,
  FLASHINFER_MOE_EP_DEEP_GEMM,
  DEEP_GEMM_MEGA_MOE,
  AITER_MEGA_MOE,
};

// Every enumerator, in upstream's declaration order, then the two of models.
[[nodiscard]] std::span<const Backend> all_backends();
[[nodiscard]] std::string_view backend_name(Backend backend);
// By enumerator name, exact spelling; "AITER" is upstream's alias of AITER_MXFP4_BF16.
[[nodiscard]] std::optional<Backend> backend_from_name(std::string_view name);

// Which of vLLM's two weight converters runs. gpt_oss: w13 rows are gate 0, up 0, gate 1, up 1,
// ...; generic: all gate rows, then all up rows.
enum class Family : uint8_t { kGptOss, kGeneric };
[[nodiscard]] std::string_view family_name(Family family);  // "gpt_oss", "generic"
[[nodiscard]] std::optional<Family> family_from_name(std::string_view name);

enum class Platform : uint8_t { kCuda, kRocm, kXpu, kCpu, kOther };
[[nodiscard]] std::string_view platform_name(Platform platform);  // "cuda", "rocm", ...
[[nodiscard]] std::optional<Platform> platform_from_name(std::string_view name);

}  // namespace mxfp4
