#include "formats/loader/gpu/cuda_driver.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

namespace mxfp4 {
namespace {

// Fills `function`, a pointer to a function, from the library: null where it has none.
template <class Function>
void find_if_any(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
}

// Like find_if_any, but throws GpuError where there is none.
template <class Function>
void find_function(void* library, const char* name, Function& function) {
  find_if_any(library, name, function);
  if (function == nullptr) throw GpuError(fmt::format("libcuda.so.1: has no function {}", name));
}

CudaDriver load_driver() {
  // Never closed: threads of the driver outlive every caller.
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw GpuError("libcuda.so.1: there is no CUDA driver");
  CudaDriver driver{};
  find_function(library, "cuGetErrorString", driver.error_string);
  find_function(library, "cuInit", driver.init);
  find_function(library, "cuDeviceGet", driver.device);
  find_function(library, "cuDeviceGetPCIBusId", driver.pci_bus_id);
  find_function(library, "cuDevicePrimaryCtxRetain", driver.retain_primary);
  find_function(library, "cuDevicePrimaryCtxRelease_v2", driver.release_primary);
  find_function(library, "cuCtxPushCurrent_v2", driver.push_context);
  find_function(library, "cuCtxPopCurrent_v2", driver.pop_context);
  find_function(library, "cuStreamCreate", driver.make_stream);
  find_function(library, "cuStreamDestroy_v2", driver.destroy_stream);
  find_function(library, "cuStreamSynchronize", driver.synchronize);
  find_function(library, "cuStreamWaitEvent", driver.wait_event);
  find_function(library, "cuEventCreate", driver.make_event);
  find_function(library, "cuEventDestroy_v2", driver.destroy_event);
  find_function(library, "cuEventRecord", driver.record);
  find_function(library, "cuEventQuery", driver.query);
  find_function(library, "cuMemHostRegister_v2", driver.register_host);
  find_function(library, "cuMemHostUnregister", driver.unregister_host);
  find_function(library, "cuMemHostGetDevicePointer_v2", driver.host_address);
  find_function(library, "cuMemAlloc_v2", driver.allocate);
  find_function(library, "cuMemFree_v2", driver.free);
  find_function(library, "cuMemcpyHtoD_v2", driver.copy_now);
  find_function(library, "cuMemcpyDtoDAsync_v2", driver.copy_on_gpu);
  find_function(library, "cuMemcpyHtoDAsync_v2", driver.copy_to_gpu);
  find_if_any(library, "cuMemcpyBatchAsync", driver.copy_batch);
  find_function(library, "cuModuleLoadData", driver.load_module);
  find_function(library, "cuModuleUnload", driver.unload_module);
  find_function(library, "cuModuleGetFunction", driver.function);
  find_function(library, "cuLaunchKernel", driver.launch);
  driver.check(driver.init(0), "cuInit");
  return driver;
}

}  // namespace

const CudaDriver& CudaDriver::get() {
  static const CudaDriver kDriver = load_driver();
  return kDriver;
}

void CudaDriver::check(Result result, std::string_view what) const {
  if (result == 0) return;
  const char* reason = nullptr;
  if (error_string(result, &reason) != 0 || reason == nullptr) reason = "an unknown error";
  throw GpuError(fmt::format("{}: {} ({})", what, reason, result));
}

}  // namespace mxfp4
