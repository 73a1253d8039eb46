// The kinds of facts that the engine's rules ask of a deployment. A header of its own: every rule
// includes it, and only few files the table of facts (deployment_facts.hpp).
#pragma once

#include <cstdint>

namespace mxfp4 {

enum class FactKind : uint8_t {
  kEngine,  // the engine's version
  kPlatform,
  kMachine,  // arch; in a change of the deployment, platform and arch together
  kPackage,
  kCompiler,  // CUDA's, on the serving machine
  kVariable,
  kSelector,
  kMoeBackend,
  kActivationKey,  // quantization_config.moe.activation
  kActivation,
  kRouting,
  kTpSize,
  kPcpSize,
  kDpSize,
  kExpertParallel,
  kAll2AllBackend,
  kEplb,
  kRedundantExperts,
  kSequenceParallel,
  kLora,
};

}  // namespace mxfp4
