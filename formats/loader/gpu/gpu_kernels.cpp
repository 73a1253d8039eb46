#include "formats/loader/gpu/gpu_kernels.hpp"

namespace mxfp4 {

const char* const kGpuKernels =
#include "formats/loader/gpu/gpu_kernels.ptx"
    ;

}  // namespace mxfp4
