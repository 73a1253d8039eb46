// CPUs whose memory a device reaches without a detour through another processor.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace mxfp4 {

// CPUs, ascending, that share their memory node with the PCI device `bus_id` ("0000:3B:00.0"); none
// where the system does not say. `root` is the file system's: /sys is looked for there.
[[nodiscard]] std::vector<int> cpus_near(const std::filesystem::path& root,
                                         const std::string& bus_id);

// Lets the calling thread run only on the `cpus` that it may use already. Where there are none, or
// the system refuses, nothing changes.
void run_on(const std::vector<int>& cpus) noexcept;

}  // namespace mxfp4
