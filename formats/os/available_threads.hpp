// How many threads this process may keep busy.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace mxfp4 {

// CPUs that the affinity mask and the cgroups' quotas let this process use; at least 1.
[[nodiscard]] int available_threads();

// The smallest CPU quota (cgroup v2) of this process's cgroup and those above it, in CPUs, rounded
// up; nullopt if none is set. `root` is the directory that holds proc/ and sys/: "/" but in tests.
[[nodiscard]] std::optional<int64_t> cgroup_cpus(const std::filesystem::path& root);

}  // namespace mxfp4
