// What the GPU's kernels begin with. They are C: `scripts/make-gpu-kernels` compiles each *.cu here to
// the *.ptx beside it, for every NVIDIA GPU from Volta on; tests/capi/fake_cuda.c, which says by itself
// what a group and a thread are, runs them on CPUs.
#ifdef __CUDA__
#define GPU_KERNEL extern "C" __attribute__((global)) void
#define GPU_CONSTANT static __attribute__((constant)) const
#define GROUP_X __nvvm_read_ptx_sreg_ctaid_x()
#define GROUP_Y __nvvm_read_ptx_sreg_ctaid_y()
#define GROUPS_X __nvvm_read_ptx_sreg_nctaid_x()
#define THREAD __nvvm_read_ptx_sreg_tid_x()
#define THREADS __nvvm_read_ptx_sreg_ntid_x()
#endif
