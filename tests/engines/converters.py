"""Runs a release's converters on small layers of drawn bytes and digests what they return.

The layers are those of testdata/golden (tests/golden/drawn_inputs.hpp draws the same bytes). Real torch, the triton_kernels of the wheel, of the
flashinfer that the wheel pins what converters call (kernels.py), and from 0.32.0 on the humming-kernels that it pins (humming_kernels.py). Packages
that have no CPU code (deep_gemm, aiter, older humming-kernels, the CPU extension) are absent: their backends say why they did not run.
`gptq_marlin_repack` is a CUDA operator whose source is not in the wheel: the release's own Python statement of it (marlin_utils_test) stands in.
"""
import importlib
import json
import types

import decisions  # finds the package
from mxfp4_repack.vllm import sample

# Seed, experts, H, I and whether there are biases, which the gpt_oss converters ask for.
SIZES = ((7101, 2, 256, 256, True), (7102, 1, 320, 192, True), (7103, 3, 512, 128, False), (7104, 1, 384, 640, True))
ARCHES = {"cuda": ("sm80", "sm90", "sm100", "sm120"), "rocm": ("gfx950", "gfx942", "gfx1250")}
# The platforms where a backend's converter is run, by the beginning of its name. XPU's looks at no device.
HOMES = {"AITER": ("rocm",), "TRITON": ("cuda", "rocm"), "NONE": (), "CPU": ("cuda",)}
# Backends whose converter does the same on every device of a platform are run on the first alone.
BY_DEVICE = ("HUMMING", "TRITON", "TRITON_UNFUSED", "AITER_MXFP4_FP8", "AITER_TRITON_MXFP4_BF16")
HUMMING_INPUT = "VLLM_HUMMING_INPUT_QUANT_CONFIG"
# What else a converter looks at, as the program's flags name it, and the device that it needs.
VARIANTS = {
    "MARLIN": ({}, {"params_dtype": "float16"}, {"arch": "sm120", "marlin_input_dtype": "fp8", "env": {"VLLM_MARLIN_INPUT_DTYPE": "fp8"}}),
    "HUMMING": ({"humming_input_dtype": "none"}, *({"humming_input_dtype": name, "env": {HUMMING_INPUT: json.dumps({"dtype": name})}}
                                                   for name in ("float8e4m3", "int8", "float4e2m1", "int4"))),
    "BATCHED_MARLIN": ({}, {"arch": "sm120", "marlin_input_dtype": "fp8", "env": {"VLLM_MARLIN_INPUT_DTYPE": "fp8"}}),
}


def triton_target(scene):
    """What triton's driver would say of the scene's device."""
    from triton.backends.compiler import GPUTarget
    major, minor = scene.capability if scene.platform == "cuda" else (0, 0)
    return GPUTarget("cuda", 10 * major + minor, 32) if scene.platform == "cuda" else GPUTarget("hip", scene.arch, 64)


def prepare(torch, scene):
    """Replaces what goes past vLLM: triton_kernels asks torch for the device; the Marlin repack operator has no CPU kernel."""
    torch.cuda.get_device_capability = lambda *a, **k: scene.capability
    torch.cuda.current_device = lambda: 0
    torch.set_num_threads(1)
    target_info = importlib.import_module("triton.language.target_info")
    target_info.current_target = lambda: triton_target(scene)

    def repack(weight, *rest):
        from vllm.model_executor.layers.quantization.utils.marlin_utils_test import get_weight_perm, marlin_weights
        size_k, size_n, _, *flags = [value for value in rest if isinstance(value, int)]  # releases up to 0.32 pass an empty order first
        if size_n % 64:  # the operator's own check, which the statement lacks
            raise RuntimeError(f"size_n = {size_n} is not divisible by tile_n_size = 64")
        codes = torch.stack([(weight >> (4 * i)) & 15 for i in range(8)], 1).reshape(size_k, size_n)
        return marlin_weights(codes, size_k, size_n, 4, get_weight_perm(4, *flags), *flags)
    # vLLM describes the operators that exist when this module is imported.
    importlib.import_module("vllm._custom_ops")
    marlin = importlib.import_module("vllm.model_executor.layers.quantization.utils.marlin_utils")
    if hasattr(marlin, "get__quant_fp8_method"):
        marlin.get__quant_fp8_method = lambda: None  # builds a kernel that no converter uses
    model = types.SimpleNamespace(quantization_config=None)
    importlib.import_module("vllm.config.vllm")._current_vllm_config = types.SimpleNamespace(model_config=model)
    torch.ops._C.gptq_marlin_repack = repack
    from vllm.distributed import parallel_state
    parallel_state._TP = types.SimpleNamespace(world_size=1, rank_in_group=0)


def at_home(backend, platform):
    return platform in next((where for name, where in HOMES.items() if backend.startswith(name)), ("cuda",))


def cases(backends, platform):
    """Every converter that this platform can meet, as rows without sizes."""
    for index, arch in enumerate(ARCHES[platform]):
        for backend in backends:
            if not at_home(backend, platform) or (index and backend not in BY_DEVICE):
                continue
            if backend == "HUMMING" and index > 1:
                continue  # from capability 10.0 on, it asks the CUDA compiler for its version
            for family in sample.FUNCTIONS:
                row = {"platform": "xpu" if backend == "XPU" else platform, "arch": "" if backend == "XPU" else arch, "backend": backend, "family": family}
                for variant in VARIANTS.get(backend, ({},)):
                    yield row | variant
                if arch == "gfx950" and backend in BY_DEVICE:
                    yield row | {"tp_size": 4}


def digests(release, platform, sizes=SIZES):
    """The rows with sizes and "out", or "error" where the converter stops."""
    from vllm.distributed import parallel_state

    rows = []
    for row in cases([backend.name for backend in release.oracle.Mxfp4MoeBackend], platform):
        release.scene.set(row["arch"] or "sm80", release.scene.libs, row.get("env", {}))
        parallel_state._TP.world_size = row.get("tp_size", 1)
        for seed, experts, hidden, inter, bias in sizes:
            sized = row | {"seed": seed, "E": experts, "H": hidden, "I": inter, "bias": bias or row["family"] == "gpt_oss"}
            try:
                sized["out"] = sample.converted(release, sized)
            except Exception as e:
                sized["error"] = f"{type(e).__name__}: {e}"[:200]
            rows.append(sized)
    return rows
