"""Kernel packages on a CPU: what converters call of flashinfer, executed from the wheel that a release pins.

Python functions are taken out of the wheel's files one by one, since the package itself needs a GPU to be imported. The two CUDA kernels that
rearrange bytes are plain loops: their source in the wheel is compiled for the CPU, with thread and block numbers as variables.
"""
import ast
import builtins
import ctypes
import importlib.machinery
import math
import os
import re
import subprocess
import sys
import types

import wheels

# flashinfer names that converters import, by the module they are imported from.
NAMES = {
    "flashinfer": ("block_scale_interleave",),
    "flashinfer.fp4_quantization": ("nvfp4_block_scale_interleave", "block_scale_interleave"),
    "flashinfer.fused_moe.core": ("get_w2_permute_indices_with_cache", "_maybe_get_cached_w3_w1_permute_indices"),
    "flashinfer.fused_moe": ("interleave_moe_scales_for_sm90_mixed_gemm", "interleave_moe_weights_for_sm90_mixed_gemm"),
}
PYTHON_FILES = ("flashinfer/fused_moe/prepare.py", "flashinfer/fused_moe/core.py", "flashinfer/utils.py")
INTERNAL = "flashinfer/data/csrc/nv_internal/"
CUDA_FILES = {
    "moe": INTERNAL + "tensorrt_llm/kernels/cutlass_kernels/moe_gemm/moe_gemm_mixed_utils.cu",
    "scale": INTERNAL + "cpp/kernels/quantization.cu",
    "offset": INTERNAL + "tensorrt_llm/kernels/quantization_utils.cuh",
}
PRELUDE = """
#include <cstdint>
#include <cstddef>
#include <optional>
#define __global__
#define __device__
#define __host__
#define __restrict__
#define __forceinline__ inline
struct Index { int x, y, z; };
static Index threadIdx, blockIdx, blockDim, gridDim;
"""
WEIGHT_LAUNCHER = """
extern "C" void interleave_weights(uint8_t* in, uint8_t* out, int rows, int cols) {
  gridDim = {1, 1, 1}, blockDim = {LANES, 1, 1}, blockIdx = {0, 0, 0}, threadIdx = {0, 0, 0};
  for (threadIdx.x = 0; threadIdx.x < LANES; ++threadIdx.x)
    interleave_fp4_weights_for_sm90_mixed_gemm_kernel(in, out, rows, cols);
}
"""
SCALE_LAUNCHER = """
extern "C" void interleave_scales(int batches, int rows, int padded_rows, int cols, int padded_cols, const uint8_t* in, uint8_t* out) {
  gridDim = {1, 1, 1}, blockDim = {1, 1, 1}, blockIdx = {0, 0, 0}, threadIdx = {0, 0, 0};
  block_scale_interleave_kernel<uint8_t>(batches, rows, padded_rows, cols, padded_cols, in, out);
}
"""


def definition(text, name):
    """The source of the function `name`, from its return type or template head to its closing brace."""
    for found in re.finditer(rf"\b{name}\s*\(", text):
        opening, semicolon = text.find("{", found.end()), text.find(";", found.end())
        if opening < 0 or 0 <= semicolon < opening:
            continue
        depth, end = 1, opening + 1
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        start = text.rfind("\n\n", 0, found.start()) + 2
        return text[start:end] + "\n"
    raise LookupError(f"{name} is not in this source")


def compiled(root, folder):
    """The library of the kernels of one flashinfer, built when first asked for. Before 0.6.11 there is none for weights."""
    library = os.path.join(folder, "kernels.so")
    if not os.path.exists(library):
        paths = {key: os.path.join(root, path) for key, path in CUDA_FILES.items()}
        sources = {key: open(path, encoding="utf-8").read() for key, path in paths.items() if os.path.exists(path)}
        text = PRELUDE + definition(sources["offset"], "get_sf_out_offset_128x4") + definition(sources["scale"], "block_scale_interleave_kernel")
        text += SCALE_LAUNCHER
        if "moe" in sources:
            lanes = re.search(r"void interleave_fp4_weights_for_sm90_mixed_gemm\(.*?dim3 block\((\d+),", sources["moe"], re.DOTALL).group(1)
            text += definition(sources["moe"], "interleave_fp4_weights_for_sm90_mixed_gemm_kernel") + WEIGHT_LAUNCHER.replace("LANES", lanes)
        subprocess.run(["g++", "-O1", "-shared", "-fPIC", "-x", "c++", "-", "-o", library + ".new"], input=text, text=True, check=True)
        os.rename(library + ".new", library)
    return ctypes.CDLL(library)


def is_literal(node):
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError):
        return False
    return True


def functions(root, paths, names, torch, **others):
    """Those functions of a package's Python files, with what they use of the same files; without decorators and annotations. They see this `torch`, and
    `others` by name."""
    known = {}
    for path in paths:
        full = os.path.join(root, path)
        for node in ast.parse(open(full, encoding="utf-8").read()).body if os.path.exists(full) else ():
            if isinstance(node, ast.FunctionDef):
                known.setdefault(node.name, node)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and is_literal(node.value):
                known.setdefault(node.targets[0].id, node)
    space, done, waiting = {"torch": torch, "math": math} | others, set(), list(names)
    while waiting:
        name = waiting.pop()
        if name in done or name in space or hasattr(builtins, name) or name not in known:
            continue
        done.add(name)
        node = known[name]
        if isinstance(node, ast.FunctionDef):
            node.decorator_list, node.returns = [], None
            for argument in node.args.args + node.args.kwonlyargs:
                argument.annotation = None
        try:
            exec(compile(ast.Module([node], []), name, "exec"), space)
        except NameError:  # a default value from elsewhere: what is wanted here does not call it
            continue
        waiting += [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]
    return {name: space[name] for name in names if name in space}


def up(n, multiple):
    return -(-n // multiple) * multiple


def pointer(tensor):
    return ctypes.c_void_p(tensor.data_ptr())


def operators(library):
    """The two CUDA operators as functions of CPU tensors, with the shapes that flashinfer's own wrappers give."""
    import torch

    def weights(weight, quant_type="fp4"):
        if quant_type != "fp4":
            raise NotImplementedError(f"interleave of {quant_type}")
        weight = weight.contiguous()
        out = torch.empty_like(weight)
        experts, rows, columns = weight.shape
        for expert in range(experts):
            library.interleave_weights(pointer(weight[expert]), pointer(out[expert]), rows, 2 * columns)
        return out

    def scales(scale):
        batches = scale.shape[0] if scale.dim() == 3 else 1
        rows, columns = scale.shape[-2:]
        scale = scale.contiguous()
        out = torch.empty(batches * up(rows, 128) * up(columns, 4), dtype=scale.dtype)
        library.interleave_scales(batches, rows, up(rows, 128), columns, up(columns, 4), pointer(scale), pointer(out))
        return out
    return {"interleave_moe_weights_for_sm90_mixed_gemm": weights, "block_scale_interleave": scales, "nvfp4_block_scale_interleave": scales}


def install_flashinfer(version, cache):
    """Puts modules named flashinfer... into this process that hold what converters import."""
    import torch

    root = wheels.package("flashinfer-python", version, cache, (".py",) + tuple(CUDA_FILES.values()))
    made = functions(root, PYTHON_FILES, [name for names in NAMES.values() for name in names], torch)
    made |= operators(compiled(root, os.path.dirname(root)))
    for module, names in NAMES.items():
        at = types.ModuleType(module)
        at.__path__, at.__spec__ = [], importlib.machinery.ModuleSpec(module, None, is_package=True)
        for name in names:
            if name in made:
                setattr(at, name, made[name])
        sys.modules[module] = at
