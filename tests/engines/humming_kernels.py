"""humming-kernels on a CPU: its Python from the wheel that a release pins, and two kernels, compiled for the CPU from the wheel's source.

A thread of the kernel that rounds codes for 8-bit activations takes 32 codes. The repacking kernel takes a tile of 64 rows: 32 threads copy it into
shared memory, wait for each other, and each writes its words. Here the threads run one after another, twice: in the second round the whole tile is
there.
"""
import collections
import contextlib
import ctypes
import dataclasses
import hashlib
import importlib
import os
import re
import subprocess
import sys
import types

import wheels

REPACK = "humming/include/humming/kernel/process.cuh"
ROUND = "humming/include/humming/kernel/process_mxfp4.cuh"
installed = False
PRELUDE = """
#include <cassert>
#include <cmath>
#include <cstdint>
#define CUDA_INLINE inline
#define __global__
#define PRAGMA_UNROLL
#define CEIL_DIV(a, b) (((a) + (b) - 1) / ((b) == 0 ? 1 : (b)))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
struct Index { uint32_t x, y, z; };
struct uint4 { uint32_t x, y, z, w; };
static Index threadIdx, blockIdx, blockDim, gridDim;
constexpr uint32_t static_next_power_of_2(uint32_t n) { uint32_t p = 1; while (p < n) p *= 2; return p; }
"""
REPACK_LAUNCHER = """
extern "C" void repack(const uint32_t* in, uint32_t* out, uint32_t experts, uint32_t n, uint32_t k, uint32_t padded_n, uint32_t padded_k, uint32_t mode) {
  gridDim = {(n + 63) / 64, (k + 63) / 64, experts}, blockDim = {32, 1, 1};
  for (uint32_t z = 0; z < gridDim.z; ++z) for (uint32_t y = 0; y < gridDim.y; ++y) for (uint32_t x = 0; x < gridDim.x; ++x) {
    blockIdx = {x, y, z};
    for (uint32_t step = 0; step < 64; ++step) {
      threadIdx = {step % 32, 0, 0};
      KERNEL(in, out, nullptr, n, k, padded_n, padded_k MODE);
    }
  }
}
"""
ROUND_LAUNCHER = """
extern "C" void round_codes(void* in, void* out, uint8_t* shifts, uint32_t groups) {
  blockDim = {1, 1, 1}, threadIdx = {0, 0, 0}, blockIdx = {0, 0, 0};
  for (; blockIdx.x < groups; ++blockIdx.x) process_mxfp4_w4a8(static_cast<uint4*>(in), static_cast<uint4*>(out), shifts, groups);
}
"""


class UnknownVersion:
    """The version of the serving machine's CUDA compiler where a row does not tell it; the package compares it for BF16 activations alone."""

    def __ge__(self, other):
        raise NotImplementedError("the bytes depend on the version of the serving machine's CUDA compiler")


compiler_version = UnknownVersion()


def play_compiler(version):
    """Lets the package see a CUDA compiler, such as "12.9", or one of unknown version."""
    global compiler_version
    compiler_version = tuple(map(int, version.split("."))) if version else UnknownVersion()


class Device:
    """What the package's extension would say of the scene's device."""
    index, is_ppu, sm_count, name = 0, False, 100, "Faked device"
    tensorcore_tops = collections.defaultdict(lambda: 1000.0)

    def __init__(self, scene):
        self.scene = scene

    sm_major = property(lambda self: self.scene.capability[0])
    sm_minor = property(lambda self: self.scene.capability[1])
    sm_version = property(lambda self: 10 * self.sm_major + self.sm_minor)


def compiled(root, source, launcher):
    """The library of a kernel, built when first asked for."""
    text = open(os.path.join(root, source), encoding="utf-8").read()
    text = re.sub(r"#include.*|#pragma once", "", text).replace("__shared__", "static").replace("__syncthreads();", "")
    text = PRELUDE + text + launcher
    library = os.path.join(os.path.dirname(root), f"kernel-{hashlib.sha256(text.encode()).hexdigest()[:16]}.so")
    if not os.path.exists(library):
        subprocess.run(["g++", "-std=c++17", "-O1", "-fno-strict-aliasing", "-w", "-shared", "-fPIC", "-x", "c++", "-", "-o", library + ".new"], input=text, text=True, check=True)
        os.rename(library + ".new", library)
    return ctypes.CDLL(library)


def repacking(torch, root):
    """The operator `repack_weight` as a function of CPU tensors. The package's own class says which instance of the kernel it would launch."""
    described = importlib.import_module("humming.kernel.repack_weight").RepackWeightKernel
    fields = {field.name for field in dataclasses.fields(described)}

    def repack_weight(inputs, weight_bits, activation_bits, is_weight_packed, padded_shape_n=None, padded_shape_k=None, zero_point=None, interleave_mode=3,
                      outputs=None, **rest):
        if not is_weight_packed or rest.get("should_preprocess_for_int2fp") or zero_point is not None or outputs is not None:
            raise NotImplementedError("weights other than packed codes")
        given = {"weight_bits": weight_bits, "activation_bits": activation_bits, "is_weight_packed": True} | rest
        kernel = described(**{name: value for name, value in given.items() if name in fields})
        has_mode = len(kernel.arg_types) == 8  # before 0.1.4 there is none
        library = compiled(root, REPACK, REPACK_LAUNCHER.replace("KERNEL", kernel.kernel_expr).replace("MODE", ", mode" if has_mode else ""))
        experts, n, k = inputs.shape[0], inputs.shape[1], inputs.shape[2] * 32 // weight_bits
        sizes = (experts, n, k, padded_shape_n or n, padded_shape_k or k, interleave_mode)
        rows = 64 if rest.get("use_packed_k_layout") else 256 // activation_bits
        out = torch.zeros((experts, sizes[4] // rows, sizes[3] * rows * weight_bits // 32), dtype=torch.int32)
        inputs = inputs.contiguous()
        library.repack(ctypes.c_void_p(inputs.data_ptr()), ctypes.c_void_p(out.data_ptr()), *map(ctypes.c_uint32, sizes))
        return out
    return repack_weight


def rounding(root):
    """The operator `process_mxfp4_w4a8_weight`, which the package calls in place."""
    def process_mxfp4_w4a8_weight(inputs, delta_scale_offsets, inplace=False, outputs=None):
        if not inplace or not inputs.is_contiguous() or inputs.numel() != 4 * delta_scale_offsets.numel():
            raise NotImplementedError("blocks other than 32 codes, or rounded into another tensor")
        shifts = delta_scale_offsets.contiguous()
        pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (inputs, inputs, shifts)]
        compiled(root, ROUND, ROUND_LAUNCHER).round_codes(*pointers, ctypes.c_uint32(shifts.numel()))
        return inputs
    return process_mxfp4_w4a8_weight


def play_device(torch, scene):
    """Lets the package see the scene's device: newer ones ask their extension for it, older ones torch."""
    extension = types.SimpleNamespace(_DeviceInfo=lambda index: Device(scene))
    for name in ("humming.utils.device", "humming.device"):
        try:
            importlib.import_module(name)._get_device_info_extension = lambda: extension
        except ModuleNotFoundError:
            pass
    torch.cuda.device = lambda index: contextlib.nullcontext()
    torch.cuda.get_device_properties = lambda *a, **k: types.SimpleNamespace(major=scene.capability[0], minor=scene.capability[1], multi_processor_count=100)
    runtime = importlib.import_module("humming.jit.runtime").KernelRuntime
    runtime._get_compiler = lambda: None
    runtime.prepare = lambda kernel: None
    runtime.current_context = staticmethod(lambda: 0)
    importlib.import_module("humming.config.config")._cuda_compiler_version = lambda compiler: compiler_version
    try:
        transform = importlib.import_module("humming.transform")
    except ModuleNotFoundError:
        return
    if hasattr(transform, "DeviceInfo"):
        device_info = transform.DeviceInfo
        transform.DeviceInfo = lambda device=None: device_info(0)


def install(version, cache, scene):
    """Lets this process import the package, for the scene's device."""
    import torch

    global installed
    installed = True
    root = wheels.package("humming-kernels", version, cache, (".py", "process.cuh", "process_mxfp4.cuh"))
    sys.path.insert(0, root)
    play_device(torch, scene)
    operators = importlib.import_module("humming.ops")
    operators.repack_weight, operators.process_mxfp4_w4a8_weight = repacking(torch, root), rounding(root)
