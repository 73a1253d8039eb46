// In place of the CUDA driver and runtime, below the wheel's DeepGEMM: one device of the capability
// PLAYED_CAPABILITY, and kernels that are libraries of the CPU with a function `launch`.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

extern "C" {

cudaError_t cudaFree(void*) { return cudaSuccess; }
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  return *status = cudaStreamCaptureStatusNone, cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* told, int) {
  std::memset(told, 0, sizeof *told);
  const int capability = std::atoi(std::getenv("PLAYED_CAPABILITY"));
  told->major = capability / 10, told->minor = capability % 10;
  told->multiProcessorCount = 100, told->sharedMemPerBlockOptin = 99 << 10;
  return cudaSuccess;
}

// Nobody asks for matrix products: only a handle for them.
int cublasLtCreate(void** handle) { return *handle = handle, 0; }
int cublasLtDestroy(void*) { return 0; }

// torch's, as the extension of one release or another asks.
struct Stream {
  int64_t device, id;
};
Stream _ZN3c104cuda20getCurrentCUDAStreamEa(signed char) { return {}; }
void* _ZNK3c104cuda10CUDAStream6streamEv(const Stream*) { return nullptr; }
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
