#include "formats/os/available_threads.hpp"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include "lib/core/checked.hpp"

namespace mxfp4 {
namespace {

namespace fs = std::filesystem;

// This process's cgroup: "/" in a namespace of its own, or where there is none.
fs::path own_cgroup(const fs::path& root) {
  constexpr std::string_view kUnified = "0::";
  std::ifstream lines(root / "proc/self/cgroup");
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(kUnified)) continue;
    // Outside of the namespace's root it begins with /.. ; normal paths do not leave /.
    return (fs::path("/") / line.substr(kUnified.size())).lexically_normal();
  }
  return "/";
}

// "<quota> <period>" in microseconds, or "max <period>".
std::optional<int64_t> quota_of(const fs::path& cgroup) {
  std::ifstream limits(cgroup / "cpu.max");
  std::string quota;
  int64_t period = 0;
  if (!(limits >> quota >> period) || period <= 0) return std::nullopt;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(quota.data(), quota.data() + quota.size(), value);
  if (error != std::errc{} || end != quota.data() + quota.size() || value <= 0) return std::nullopt;
  return ceil_div(value, period);
}

}  // namespace

std::optional<int64_t> cgroup_cpus(const fs::path& root) {
  const fs::path mount = root / "sys/fs/cgroup";
  std::optional<int64_t> smallest;
  for (fs::path group = own_cgroup(root);; group = group.parent_path()) {
    // The path may be the host's, and a container sees only its own part of it: no file, no quota.
    const std::optional<int64_t> cpus = quota_of(mount / group.relative_path());
    if (cpus) smallest = std::min(*cpus, smallest.value_or(*cpus));
    if (group == group.root_path()) return smallest;
  }
}

int available_threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int64_t cpus = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return static_cast<int>(std::max<int64_t>(1, std::min(cpus, cgroup_cpus("/").value_or(cpus))));
}

}  // namespace mxfp4
