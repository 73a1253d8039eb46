// In place of the CUDA driver and runtime, below the wheel's DeepGEMM: one device of the capability
// PLAYED_CAPABILITY, and kernels that are libraries of the CPU with a function `launch`.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

extern "C" {

cudaError_t cudaFree(void*) { return cudaSuccess; }
cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* told, int) {
  std::memset(told, 0, sizeof *told);
  const int capability = std::atoi(std::getenv("PLAYED_CAPABILITY"));
  told->major = capability / 10, told->minor = capability % 10;
  told->multiProcessorCount = 100, told->sharedMemPerBlockOptin = 99 << 10;
  return cudaSuccess;
}

// torch: tensors of the CPU play those of the device.
int aoti_torch_device_type_cuda() { return 0; }
int aoti_torch_get_current_device_index(int* device) { return *device = 0; }
int aoti_torch_get_current_cuda_stream(int, void** stream) { return *stream = nullptr, 0; }

CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option*, void**,
                               unsigned, CUlibraryOption*, void**, unsigned) {
  *library = static_cast<CUlibrary>(dlopen(path, RTLD_NOW));
  return *library != nullptr ? CUDA_SUCCESS : CUDA_ERROR_FILE_NOT_FOUND;
}
CUresult cuLibraryUnload(CUlibrary) { return CUDA_SUCCESS; }
CUresult cuLibraryGetKernelCount(unsigned* count, CUlibrary) { return *count = 1, CUDA_SUCCESS; }
CUresult cuLibraryEnumerateKernels(CUkernel* kernel, unsigned, CUlibrary library) {
  *kernel = static_cast<CUkernel>(dlsym(library, "launch"));
  return *kernel != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  return *function = reinterpret_cast<CUfunction>(kernel), CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int) { return CUDA_SUCCESS; }
CUresult cuGetErrorName(CUresult, const char** text) { return *text = "played", CUDA_SUCCESS; }
CUresult cuGetErrorString(CUresult, const char** text) { return *text = "played", CUDA_SUCCESS; }
CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** given, void**) {
  using Launch = void (*)(unsigned, unsigned, unsigned, void**);
  reinterpret_cast<Launch>(function)(config->gridDimX, config->gridDimY, config->blockDimX, given);
  return CUDA_SUCCESS;
}

}  // extern "C"
