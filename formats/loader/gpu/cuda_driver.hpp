// The functions of NVIDIA's driver that the loader calls, found when the program runs: building
// needs no CUDA, and a machine without it runs everything else. Names, types and meanings are as in
// the CUDA driver API's manual.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lib/core/error.hpp"

namespace mxfp4 {

// The driver is missing, or refused. The message names the function and the driver's reason.
class GpuError : public Error {
 public:
  explicit GpuError(std::string message) : Error(Error::unsupported(std::move(message))) {}
};

// The driver cannot compile the kernel that makes experts, and can do all else.
class NoKernel : public GpuError {
 public:
  using GpuError::GpuError;
};

struct CudaDriver {
  using Result = int;                           // 0: success
  static constexpr Result kNotReady = 600;      // of query
  static constexpr Result kNotSupported = 801;  // of copy_batch
  using Device = int;
  using Address = uint64_t;  // of a GPU's memory
  using Context = struct CUctx_st*;
  using Stream = struct CUstream_st*;
  using Event = struct CUevent_st*;
  using Module = struct CUmod_st*;
  using Function = struct CUfunc_st*;
  // CUmemcpyAttributes.
  struct CopyKind {
    int source_order = 1;  // CU_MEMCPY_SRC_ACCESS_ORDER_STREAM
    int source_place = 0;
    int source_number = 0;
    int target_place = 0;
    int target_number = 0;
    unsigned flags = 0;
  };

  Result (*error_string)(Result, const char**);
  Result (*init)(unsigned flags);
  Result (*device)(Device*, int ordinal);
  Result (*pci_bus_id)(char* text, int size, Device);
  Result (*retain_primary)(Context*, Device);
  Result (*release_primary)(Device);
  Result (*push_context)(Context);
  Result (*pop_context)(Context*);
  Result (*make_stream)(Stream*, unsigned flags);
  Result (*destroy_stream)(Stream);
  Result (*synchronize)(Stream);
  Result (*wait_event)(Stream, Event, unsigned flags);
  Result (*make_event)(Event*, unsigned flags);
  Result (*destroy_event)(Event);
  Result (*record)(Event, Stream);
  Result (*query)(Event);
  Result (*register_host)(void*, size_t bytes, unsigned flags);
  Result (*unregister_host)(void*);
  Result (*host_address)(Address*, void*, unsigned flags);
  Result (*allocate)(Address*, size_t bytes);
  Result (*free)(Address);
  Result (*copy_now)(Address, const void*, size_t bytes);  // from any memory; over when it returns
  Result (*copy_on_gpu)(Address to, Address from, size_t bytes, Stream);
  Result (*copy_to_gpu)(Address, const void*, size_t bytes, Stream);
  // Null before CUDA 12.8.
  Result (*copy_batch)(Address* to, Address* from, size_t* bytes, size_t count, CopyKind*,
                       size_t* first_of_kind, size_t kinds, size_t* failed, Stream);
  Result (*load_module)(Module*, const void* ptx);
  Result (*unload_module)(Module);
  Result (*function)(Function*, Module, const char* name);
  Result (*launch)(Function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream,
                   void** arguments, void** extra);

  // The driver of this process, loaded and initialized by the first call. Throws GpuError where
  // there is none, or none that has all these functions.
  static const CudaDriver& get();
  // Throws GpuError unless `result` is success. `what`: "cuMemHostRegister".
  void check(Result result, std::string_view what) const;
};

// The GPU's context is the calling thread's while this lives.
class InContext {
 public:
  InContext(const CudaDriver& cuda, CudaDriver::Context context) : cuda_(cuda) {
    cuda.check(cuda.push_context(context), "cuCtxPushCurrent");
  }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;
  ~InContext() {
    CudaDriver::Context popped = nullptr;
    cuda_.pop_context(&popped);
  }

 private:
  const CudaDriver& cuda_;
};

}  // namespace mxfp4
