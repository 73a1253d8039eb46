"""Runs a release's converters on small layers of drawn bytes and digests what they return.

The layers are those of testdata/golden (tests/golden/drawn_inputs.hpp draws the same bytes). Real torch, the triton_kernels of the wheel, of the
flashinfer that the wheel pins what converters call (kernels.py), the humming-kernels that it pins (humming_kernels.py), of AITER the functions that
they call (aiter_source.py), from 0.24.0 on the DeepGEMM in the wheel (deep_gemm_kernels.py), and a third party's build of the CPU extension
(cpu_kernels.py). A backend whose package is absent says why it did not run.
`gptq_marlin_repack` is a CUDA operator whose source is not in the wheel: the release's own Python statement of it (marlin_utils_test) stands in.
"""
import importlib
import json
import types

import aiter_source
import decisions  # finds the package
import grid
import humming_kernels
import triton_source
import sample

# Seed, experts, H, I and whether there are biases, which the gpt_oss converters ask for.
SIZES = ((7101, 2, 256, 256, True), (7102, 1, 320, 192, True), (7103, 3, 512, 128, False), (7104, 1, 384, 640, True))
ARCHES = {"cuda": ("sm80", "sm90", "sm100", "sm120"), "rocm": ("gfx950", "gfx942", "gfx1250")}
# The platforms where a backend's converter is run, by the beginning of its name. XPU's looks at no device.
HOSTS = {"XPU": "xpu", "CPU": "cpu"}  # platforms that the process of another one plays
HOMES = {"AITER": ("rocm",), "TRITON": ("cuda", "rocm"), "NONE": (), "CPU": ("cuda",)}
# Backends whose converter does the same on every device of a platform are run only on the first.
BY_DEVICE = ("HUMMING", "TRITON", "TRITON_UNFUSED", "AITER_MXFP4_FP8", "AITER_TRITON_MXFP4_BF16", "AITER_MXFP4_BF16")
# Of these, the ones that look at the size of the tensor-parallel world too.
BY_WORLD = tuple(name for name in BY_DEVICE if name != "AITER_MXFP4_BF16")
HUMMING_INPUT = "VLLM_HUMMING_INPUT_QUANT_CONFIG"
# Types of activations as the program names them, as the variable says each, and the machines where they are run.
HUMMING_TYPES = (("float8e4m3", {"dtype": "float8e4m3"}), ("float8e4m3", {"dtype": "float8e4m3", "group_size": 32, "scale_dtype": "float8e8m0"}),
                 ("float8e4m3-group32", {"dtype": "float8e4m3", "group_size": 32, "scale_dtype": "float32"}),
                 ("float8e4m3-group128", {"dtype": "float8e4m3", "group_size": 128}), ("float8e4m3-group64", {"dtype": "float8e4m3", "group_size": 64}),
                 ("int8", {"dtype": "int8"}), ("float4e2m1", {"dtype": "float4e2m1"}),
                 ("float4e2m1-group16", {"dtype": "float4e2m1", "group_size": 16, "scale_dtype": "float8e4m3"}), ("int4", {"dtype": "int4"}))
# The same by the key of a checkpoint or a user; a key that is not here has no type.
HUMMING_KEYS = {"fp8_per_token": "float8e4m3", "mxfp8": "float8e4m3", "fp8_per_block_dynamic": "float8e4m3-group128", "mxfp4": "float4e2m1",
                "int8_per_group_32": "int8"}
# Activations that no layout of ours is for are run at one size.
HUMMING_RARE = ("float4e2m1-group16", "int4")
# 16-bit activations by params dtype, with CUDA compilers before and from the version that newer packages ask for. The method gives a layer biases in
# BF16, which the package refuses beside FP16.
HUMMING_PARAMS = (({}, ("13.1", "13.2"), ("sm100", "sm110", "sm120")),
                  ({"params_dtype": "float16", "bias": False}, ("12.6", "12.7"), ("sm89", "sm100", "sm110", "sm120")))
HUMMING_ARCHES = ("sm75", "sm80", "sm89", "sm90", "sm100", "sm110", "sm120")
# The generic converter asks for the activation, and AITER for the types that SiTU's kernels take, told by either of two variables.
AITER = {"VLLM_ROCM_USE_AITER": "1"}
SITU = ({"activation": "situ"}, {"activation": "situ", "env": AITER | {"VLLM_ROCM_USE_AITER_MOE_SITUV2_A8W4": "1"}},
        {"activation": "situ", "env": AITER | {"VLLM_ROCM_USE_AITER_MOE_SITUV2": "a8w4"}})
# The method class tells the generic converter what it makes of this variable.
SEPARATED = {"env": AITER | {"VLLM_ROCM_USE_AITER_MOE_A4W4_DSV4": "1"}, "told": {"use_separated_a4w4": True}}
# Kimi-K3's method class converts by itself where the user asks for int4 (0.32.0 and later), on one device.
INT4 = {"activation": "situ", "aiter_weight": "int4", "env": AITER}
INT4_EVERY = INT4 | {"scale_mode": "every"}
# What else a converter looks at, as the program's flags name it, and the device that it needs.
VARIANTS = {
    "AITER_TRITON_MXFP4_MXFP4": tuple({"arch": "gfx1250", "activation": name} for name in ("swigluoai", "swigluoai_uninterleave", "silu")),
    "MARLIN": ({}, {"params_dtype": "float16"}, {"arch": "sm120", "marlin_input_dtype": "fp8", "env": {"VLLM_MARLIN_INPUT_DTYPE": "fp8"}}),
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
    torch.accelerator.empty_cache = lambda: None
    copy = torch.Tensor.copy_

    def copy_bytes(self, source, *rest):  # a GPU copies them as they lie; the CPU has no copy of this type
        if self.dtype == getattr(source, "dtype", None) == torch.int4:
            return copy(self.view(torch.uint8), source.view(torch.uint8), *rest).view(torch.int4)
        return copy(self, source, *rest)
    torch.Tensor.copy_ = copy_bytes
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


def humming_keys(release):
    """Variants by key, as far as the release's converters ask for one: 0.31.0 for none, 0.32.0 for the checkpoint's, 0.33.0 for the user's too."""
    generic = getattr(release.oracle, sample.FUNCTIONS["generic"])
    if "activation_key" not in generic.__code__.co_varnames[:generic.__code__.co_argcount]:
        return
    for key in ("fp8_per_token", "fp8_per_block_dynamic"):
        yield {"family": "generic", "humming_input_dtype": HUMMING_KEYS[key], "checkpoint": key}
    if hasattr(release.oracle, "_humming_input_schema"):
        for key in release.keys:
            for family in sample.FUNCTIONS:
                yield {"family": family, "humming_input_dtype": HUMMING_KEYS.get(key, key), "user": key}


def humming_variants(arch, family):
    for params, compilers, asked_on in HUMMING_PARAMS:
        if family == "gpt_oss" and params:
            continue
        none = params | {"humming_input_dtype": "none"}
        yield from (none, *(none | {"cuda_compiler": version} for version in compilers if arch in asked_on))
        for name, said in HUMMING_TYPES:
            if not params or name == "int8":
                yield params | {"humming_input_dtype": name, "env": {HUMMING_INPUT: json.dumps(said)}}


def aiter_variants(release, family, arch):
    """What AITER_MXFP4_BF16's branch looks at in this release, beside the device; and what a method class does in its place."""
    if arch != "gfx950":
        from vllm.model_executor.layers.quantization import mxfp4

        return ({}, INT4, INT4_EVERY) if family == "generic" and arch == "gfx942" and hasattr(mxfp4, "_use_k3_situ_int4_gfx942") else ({},)
    generic = getattr(release.oracle, sample.FUNCTIONS["generic"])
    asked = generic.__code__.co_varnames[:generic.__code__.co_argcount] if family == "generic" else ()
    return ({}, *(SITU if "activation" in asked else ()), *((SEPARATED,) if "use_separated_a4w4" in asked else ()))


def by_method(release, row):
    """What the release's method class makes of the row's layer where it converts by itself. It is asked whether it does, and builds no kernel."""
    from vllm.model_executor.layers.quantization import mxfp4

    model = release.settings._current_vllm_config.model_config
    model.quantization_config = release.args(moe={"weight": "int4_per_group_32"})
    case = grid.case((row["platform"], row["arch"]), activation=row["activation"])
    config = release.moe_config(case)
    config.activation_situ_linear_beta = 1.0
    method = mxfp4.Mxfp4MoEMethod(config)
    if not method.is_k3_situ_int4_gfx942:
        raise RuntimeError("the method asks the selector")
    method.get_fused_moe_quant_config = lambda layer: None
    layer = sample.layer_of(release.torch, sample.as_torch(release.torch, sample.drawn(row), "cpu"), config.activation, row)
    method.process_weights_after_loading(layer)
    return {name: sample.described(getattr(layer, name)) for name in sample.RESULTS if getattr(layer, name, None) is not None}


def converted(release, row):
    return by_method(release, row) if "aiter_weight" in row else sample.converted(release, row)


def at_home(backend, platform):
    return platform in next((where for name, where in HOMES.items() if backend.startswith(name)), ("cuda",))


def cases(release, platform):
    """Every converter that this platform can meet, as rows without sizes."""
    for backend in (backend.name for backend in release.oracle.Mxfp4MoeBackend):
        humming = backend == "HUMMING" and humming_kernels.installed
        for index, arch in enumerate(HUMMING_ARCHES if humming else ARCHES[platform]):
            if not at_home(backend, platform) or (index and backend not in BY_DEVICE) or (index and backend == "HUMMING" and not humming):
                continue
            for family in sample.FUNCTIONS:
                row = {"platform": HOSTS.get(backend, platform), "arch": "" if backend in HOSTS else arch, "backend": backend, "family": family}
                aiter = backend == "AITER_MXFP4_BF16"
                if backend == "DEEPGEMM_MXFP4" and "deep_gemm" in release.scene.libs:
                    yield from (row | {"arch": name} for name in ("sm100", "sm103", "sm120", "sm121", "sm90"))
                    continue
                for variant in humming_variants(arch, family) if humming else aiter_variants(release, family, arch) if aiter else VARIANTS.get(backend, ({},)):
                    yield row | variant
                if arch == "gfx950" and backend in BY_WORLD:
                    yield row | {"tp_size": 4}
            if humming and arch in ("sm90", "sm120"):
                yield from ({"platform": platform, "arch": arch, "backend": backend} | variant for variant in humming_keys(release))


def made_by(release, sized, aiter, triton_kernels):
    """What the converter returns, and of which versions of the packages that lie beside the wheel."""
    def through_aiter():
        return aiter_source.agreed(aiter, lambda: converted(release, sized)) if aiter else (converted(release, sized), [])
    (out, by_aiter), by_triton = triton_source.agreed(triton_kernels, through_aiter) if triton_kernels else (through_aiter(), [])
    return {"out": out} | ({"aiter": by_aiter} if by_aiter else {}) | ({"triton_kernels": by_triton} if by_triton else {})


def digests(release, platform, sizes=SIZES, aiter=None, triton_kernels=None):
    """The rows with sizes and "out", or "error" where the converter stops; "aiter" and "triton_kernels" name the versions of them that made it."""
    from vllm.distributed import parallel_state

    rows = []
    for row in cases(release, platform):
        release._set_config(grid.case((row["platform"], row["arch"]), activation_override=row.get("user")))
        release.scene.set(row["arch"] or "sm80", release.scene.libs, row.get("env", {}))
        humming_kernels.play_compiler(row.get("cuda_compiler"))
        parallel_state._TP.world_size = row.get("tp_size", 1)
        for seed, experts, hidden, inter, bias in sizes[:1] if row.get("humming_input_dtype") in HUMMING_RARE else sizes:
            sized = row | {"seed": seed, "E": experts, "H": hidden, "I": inter, "bias": row.get("bias", bias or row["family"] == "gpt_oss")}
            try:
                sized |= made_by(release, sized, aiter, triton_kernels)
            except Exception as e:
                sized["error"] = f"{type(e).__name__}: {e}"[:200]
            rows.append(sized)
    return rows
