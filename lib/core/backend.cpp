#include "lib/core/backend.hpp"

#include <array>
#include <utility>

namespace mxfp4 {
namespace {

constexpr std::array kBackends = {
    Backend::NONE,
    Backend::B12X_MXFP4_MXFP8,
    Backend::B12X_MXFP4_BF16,
    Backend::DEEPGEMM_MXFP4,
    Backend::FLASHINFER_TRTLLM_MXFP4_MXFP8,
    Backend::FLASHINFER_TRTLLM_MXFP4_BF16,
    Backend::FLASHINFER_CUTLASS_MXFP4_MXFP8,
    Backend::FLASHINFER_CUTLASS_MXFP4_BF16,
    Backend::CUTLASS_MXFP4_MXFP4,
    Backend::BATCHED_MARLIN,
    Backend::MARLIN,
    Backend::AITER_MXFP4_BF16,
    Backend::AITER_TRITON_MXFP4_BF16,
    Backend::AITER_MXFP4_FP8,
    Backend::AITER_MXFP4_MXFP4,
    Backend::AITER_TRITON_MXFP4_MXFP4,
    Backend::TRITON,
    Backend::TRITON_UNFUSED,
    Backend::XPU,
    Backend::CPU,
    Backend::EMULATION,
    Backend::HUMMING,
    Backend::FLASHINFER_MOE_EP_CUTEDSL,
    Backend::FLASHINFER_MOE_EP_DEEP_GEMM,
    Backend::DEEP_GEMM_MEGA_MOE,
    Backend::AITER_MEGA_MOE,
};

constexpr std::array<std::string_view, kBackends.size()> kBackendNames = {
    "NONE",
    "B12X_MXFP4_MXFP8",
    "B12X_MXFP4_BF16",
    "DEEPGEMM_MXFP4",
    "FLASHINFER_TRTLLM_MXFP4_MXFP8",
    "FLASHINFER_TRTLLM_MXFP4_BF16",
    "FLASHINFER_CUTLASS_MXFP4_MXFP8",
    "FLASHINFER_CUTLASS_MXFP4_BF16",
    "CUTLASS_MXFP4_MXFP4",
    "BATCHED_MARLIN",
    "MARLIN",
    "AITER_MXFP4_BF16",
    "AITER_TRITON_MXFP4_BF16",
    "AITER_MXFP4_FP8",
    "AITER_MXFP4_MXFP4",
    "AITER_TRITON_MXFP4_MXFP4",
    "TRITON",
    "TRITON_UNFUSED",
    "XPU",
    "CPU",
    "EMULATION",
    "HUMMING",
    "FLASHINFER_MOE_EP_CUTEDSL",
    "FLASHINFER_MOE_EP_DEEP_GEMM",
    "DEEP_GEMM_MEGA_MOE",
    "AITER_MEGA_MOE",
};

constexpr std::array<std::string_view, 2> kEngineNames = {"vllm", "sglang"};
constexpr std::array<std::string_view, 2> kEngineTitles = {"vLLM", "SGLang"};
constexpr std::array<std::string_view, 2> kFamilyNames = {"gpt_oss", "generic"};
constexpr std::array<std::string_view, 5> kPlatformNames = {"cuda", "rocm", "xpu", "cpu", "other"};

// The enumerator whose name is `name`; every table above is in enumeration order.
template <class Enum, size_t N>
std::optional<Enum> find_name(const std::array<std::string_view, N>& names, std::string_view name) {
  for (size_t i = 0; i < N; ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace

std::span<const Backend> all_backends() { return kBackends; }

std::string_view backend_name(Backend backend) {
  return kBackendNames[static_cast<size_t>(backend)];
}

std::optional<Backend> backend_from_name(std::string_view name) {
  return find_name<Backend>(kBackendNames, name == "AITER" ? "AITER_MXFP4_BF16" : name);
}

std::string_view engine_name(Engine engine) { return kEngineNames[static_cast<size_t>(engine)]; }
std::string_view engine_title(Engine engine) { return kEngineTitles[static_cast<size_t>(engine)]; }

std::optional<Engine> engine_from_name(std::string_view name) {
  return find_name<Engine>(kEngineNames, name);
}

Engine engine_of_revision(std::string_view name) {
  return name.starts_with("sglang-") ? Engine::kSglang : Engine::kVllm;
}

std::string_view family_name(Family family) { return kFamilyNames[static_cast<size_t>(family)]; }

std::optional<Family> family_from_name(std::string_view name) {
  return find_name<Family>(kFamilyNames, name);
}

std::string_view platform_name(Platform platform) {
  return kPlatformNames[static_cast<size_t>(platform)];
}

std::optional<Platform> platform_from_name(std::string_view name) {
  return find_name<Platform>(kPlatformNames, name);
}

}  // namespace mxfp4
