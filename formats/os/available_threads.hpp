// How many threads this process may keep busy.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace mxfp4 {

// CPUs that this process may use, at least 1: the affinity mask and the cgroups' quotas.
[[nodiscard]] int available_threads();

// How many threads this process can run at once, this one included, at most `wanted`: starts that
// many and ends them again. RLIMIT_NPROC and a cgroup's pids.max may allow fewer. Call it before
// there are others.
[[nodiscard]] int startable_threads(int wanted);

// The smallest CPU quota (cgroup v2) of this process's cgroup and those above it, in CPUs, rounded
// up; nothing where none is set. `root` is the file system's: /proc and /sys are looked for there.
[[nodiscard]] std::optional<int64_t> cgroup_cpus(const std::filesystem::path& root);

}  // namespace mxfp4
