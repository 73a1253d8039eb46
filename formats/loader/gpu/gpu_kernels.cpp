#include "formats/loader/gpu/gpu_kernels.hpp"

namespace mxfp4 {

const char* const kSumText =
#include "formats/loader/gpu/sum_blocks.ptx"
    ;
const char* const kGatherText =
#include "formats/loader/gpu/gather.ptx"
    ;

}  // namespace mxfp4
