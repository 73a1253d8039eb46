#include "formats/os/near_cpus.hpp"

#include <sched.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <sstream>

namespace mxfp4 {

std::vector<int> cpus_near(const std::filesystem::path& root, const std::string& bus_id) {
  std::string name = bus_id;
  std::ranges::transform(name, name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::ifstream file(root / "sys/bus/pci/devices" / name / "local_cpulist");
  std::vector<int> cpus;
  // "0-15,32-47"
  for (std::string range; std::getline(file, range, ',');) {
    std::istringstream text(range);
    int first = 0;
    if (!(text >> first)) break;
    int last = first;
    if (text.peek() == '-' && !(text.ignore() >> last)) break;
    for (int cpu = std::max(first, 0); cpu <= std::min(last, CPU_SETSIZE - 1); ++cpu)
      cpus.push_back(cpu);
  }
  return cpus;
}

void run_on(const std::vector<int>& cpus) noexcept {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  cpu_set_t near;
  CPU_ZERO(&near);
  for (const int cpu : cpus) {
    if (CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &near);
  }
  if (CPU_COUNT(&near) > 0) ::sched_setaffinity(0, sizeof near, &near);
}

}  // namespace mxfp4
