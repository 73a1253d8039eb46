"""Runs a release's converters on small layers of drawn bytes and digests what they return.

The layers are those of testdata/golden (tests/golden/drawn_inputs.hpp draws the same bytes). Real torch and the triton_kernels of the wheel;
kernel packages that have no CPU code (flashinfer, deep_gemm, aiter, humming, the CPU extension) are absent, so their backends say why they did
not run. `gptq_marlin_repack` is a CUDA operator: the release's own Python statement of it (marlin_utils_test) stands in.
"""
import hashlib
import types

import numpy

GAMMA = 0x9E3779B97F4A7C15
TENSORS = ("w13_weight", "w2_weight", "w13_weight_scale", "w2_weight_scale", "w13_bias", "w2_bias", "w13_input_scale", "w2_input_scale")
SIZES = ((7101, 2, 256, 256), (7102, 1, 320, 192), (7103, 3, 512, 128))
FUNCTIONS = {"gpt_oss": "convert_gpt_oss_weight_to_mxfp4_moe_kernel_format", "generic": "convert_weight_to_mxfp4_moe_kernel_format"}
ARCHES = {"cuda": ("sm80", "sm90", "sm100", "sm120"), "rocm": ("gfx942", "gfx950"), "xpu": ("",), "cpu": ("",), "other": ()}
# Backends whose converter does the same on every device of a platform are run on the first alone.
BY_DEVICE = ("TRITON", "TRITON_UNFUSED", "AITER_MXFP4_FP8", "AITER_TRITON_MXFP4_BF16")


def stream(seed, count):
    """`count` bytes of splitmix64 from a seed."""
    k = numpy.arange(1, (count + 7) // 8 + 1, dtype=numpy.uint64)
    with numpy.errstate(over="ignore"):
        z = numpy.uint64(seed) + k * numpy.uint64(GAMMA)
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        z = z ^ (z >> numpy.uint64(31))
    return z.astype("<u8").view(numpy.uint8)[:count].copy()


def drawn(torch, seed, experts, hidden, inter):
    """The loaded tensors of a case with typical scales, biases and uniform input scales."""
    made = {}
    shapes = {"w13_weight": (experts, 2 * inter, hidden // 2), "w2_weight": (experts, hidden, inter // 2),
              "w13_weight_scale": (experts, 2 * inter, hidden // 32), "w2_weight_scale": (experts, hidden, inter // 32)}
    for name, shape in shapes.items():
        raw = stream(seed * 16 + TENSORS.index(name), int(numpy.prod(shape)))
        made[name] = torch.from_numpy((112 + (raw & 31)).astype(numpy.uint8) if name.endswith("scale") else raw).reshape(shape)
    for name, shape in {"w13_bias": (experts, 2 * inter), "w2_bias": (experts, hidden)}.items():
        x = stream(seed * 16 + TENSORS.index(name), 2 * int(numpy.prod(shape))).view("<u2")
        bits = (x & 0x8000) | ((120 + ((x >> 7) & 7)) << 7) | (x & 0x7F)
        made[name] = torch.from_numpy(bits.astype("<u2").view("<i2")).view(torch.bfloat16).reshape(shape)
    for name in ("w13_input_scale", "w2_input_scale"):
        x = stream(seed * 16 + TENSORS.index(name), 4 * experts).view("<u4")
        bits = ((118 + ((x >> 23) & 7)) << 23) | (x & 0x7FFFFF)
        made[name] = torch.from_numpy(numpy.full(experts, bits[0]).astype("<u4").view("<f4"))
    return made


def digest(tensor):
    """dtype, shape and SHA-256 of a tensor's bytes in the order in which they lie in memory."""
    import torch

    order = sorted(range(tensor.dim()), key=lambda i: (-tensor.stride(i), i))
    stored = tensor.detach().permute(order).contiguous() if tensor.dim() else tensor.detach()
    raw = stored.reshape(-1).view(torch.uint8).numpy().tobytes()
    return {"dtype": str(tensor.dtype).removeprefix("torch."), "shape": list(stored.shape), "sha256": hashlib.sha256(raw).hexdigest()}


def described(value):
    """Digest of one of the six results: a tensor, a triton_kernels tensor, or a precision config that holds one."""
    import torch

    if value is None or isinstance(value, torch.Tensor):
        return None if value is None else digest(value)
    for name in ("weight_scale", "b_mx_scale"):
        if getattr(value, name, None) is not None:
            return described(getattr(value, name))
    storage = value.storage
    return digest(storage.data) | {"layout": type(storage.layout).__name__}


def layer_of(torch, tensors, activation, tp):
    layer = torch.nn.Module()
    for name, tensor in tensors.items():
        layer.register_parameter(name, torch.nn.Parameter(tensor, requires_grad=False))
    experts, rows, packed = tensors["w13_weight"].shape
    layer.params_dtype, layer.activation, layer.layer_name = torch.bfloat16, activation, "model.layers.0.mlp.experts"
    layer.local_num_experts = layer.num_experts = layer.global_num_experts = experts
    layer.hidden_size, layer.intermediate_size_per_partition, layer.intermediate_size = packed * 2, rows // 2, rows // 2
    layer.moe_config = types.SimpleNamespace(num_experts=experts, num_local_experts=experts, hidden_dim=packed * 2, has_bias=True, in_dtype=torch.bfloat16,
                                             intermediate_size_per_partition=rows // 2, is_act_and_mul=True, activation=activation,
                                             moe_parallel_config=types.SimpleNamespace(tp_size=tp, tp_rank=0, ep_size=1))
    return layer


def prepare(torch, scene):
    """Device questions that go past vLLM: triton_kernels asks torch; the Marlin repack operator has no CPU kernel."""
    torch.cuda.get_device_capability = lambda *a, **k: scene.capability
    torch.cuda.current_device = lambda: 0
    torch.set_num_threads(1)

    def repack(weight, perm, size_k, size_n, num_bits, is_a_8bit=False):
        from vllm.model_executor.layers.quantization.utils.marlin_utils_test import get_weight_perm, marlin_weights
        codes = torch.stack([(weight >> (4 * i)) & 15 for i in range(8)], 1).reshape(size_k, size_n)
        return marlin_weights(codes, size_k, size_n, 4, get_weight_perm(4, is_a_8bit), is_a_8bit)
    torch.ops._C.gptq_marlin_repack = repack
    from vllm.distributed import parallel_state
    parallel_state._TP = types.SimpleNamespace(world_size=1, rank_in_group=0)


def run_one(release, family, backend, size, tp):
    torch = release.torch
    seed, *dims = size
    tensors = drawn(torch, seed, *dims)
    layer = layer_of(torch, tensors, release.activation.from_str("swigluoai" if family == "gpt_oss" else "silu"), tp)
    names = ("w13_weight", "w2_weight", "w13_weight_scale", "w2_weight_scale", "w13_bias", "w2_bias")
    arguments = {name: getattr(layer, name) for name in names}
    result = getattr(release.oracle, FUNCTIONS[family])(mxfp4_backend=backend, layer=layer, _cache_permute_indices={}, **arguments)
    return {name: described(value) for name, value in zip(names, result)}


def digests(release, platform, start):
    """[{family, backend, arch, tp, size, out or error}] for every converter that this platform can meet."""
    from vllm.distributed import parallel_state

    rows = []
    for index, arch in enumerate(ARCHES[platform]):
        if platform == "rocm" and ("gfx94" in arch) != ("gfx94" in start):
            continue
        release.scene.set(arch, release.scene.libs, {})
        for backend in release.oracle.Mxfp4MoeBackend:
            if backend.name == "NONE" or (index and backend.name not in BY_DEVICE):
                continue
            for family in FUNCTIONS:
                for tp in (1, 4) if arch == "gfx950" and backend.name in BY_DEVICE else (1,):
                    parallel_state._TP.world_size = tp
                    row = {"family": family, "backend": backend.name, "arch": arch or platform, "tp": tp}
                    for size in SIZES:
                        try:
                            rows.append(row | {"size": size, "out": run_one(release, family, backend, size, tp)})
                        except Exception as e:
                            rows.append(row | {"size": size, "error": f"{type(e).__name__}: {e}"[:300]})
                            break
    return rows
