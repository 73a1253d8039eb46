"""AITER on a CPU: the Python functions that converters call of it, executed from the package's own files.

PyPI has one old version. What releases take is built from a commit, so files of commits are executed too: FOLDER/aiter-COMMIT/site holds them, laid
there by hand (`git show COMMIT:aiter/ops/shuffle.py`; README.md says of which repository). A folder that is missing is left out.
"""
import importlib
import os
import sys
import types

import kernels
import wheels

PACKAGE, VERSION = "amd-aiter", "0.1.7.post2.dev18"
COMMITS = ("0122c48149c1", "73d928d61b9b", "20ff2b5e6674", "22f2e2dc19e7")
NAMES = {
    "aiter.ops.shuffle": ("shuffle_weight", "shuffle_weight_a16w4", "shuffle_scale", "shuffle_scale_a16w4", "pack_int8_to_packed_int4",
                          "shuffle_scale_for_int4"),
    "aiter.ops.quant": ("per_1x32_i4_quant",),
    "aiter.utility.fp4_utils": ("e8m0_shuffle", "mxfp4_to_f32", "e8m0_to_f32"),
    "aiter.ops.triton.utils.shuffle": ("shuffle_scale_moe",),
}
GEMM = "aiter.ops.flydsl.kernels.moe_2stage_a16wmix"
FILES = {module: module.replace(".", "/") + ".py" for module in NAMES}
FILLING = 0x7F  # e8m0 of 1.0


def filled(torch):
    """torch whose `empty` fills: older versions leave padding uninitialised, newer ones write 1.0 there, as the program does."""
    def empty(*shape, dtype, device):
        shape = shape if isinstance(shape[0], int) else shape[0]
        return torch.full(shape, FILLING, dtype=torch.uint8, device=device).view(dtype)
    return types.SimpleNamespace(**{name: getattr(torch, name) for name in dir(torch) if not name.startswith("__")} | {"empty": empty})


def dtypes(torch):
    """aiter.dtypes: names for torch's types."""
    return types.SimpleNamespace(i8=torch.int8, i4x2=torch.int4, bf16=torch.bfloat16, fp32=torch.float32)


def gemm_with_activation(*, act):
    """Stands for the kernel that packed int4 is for: the method looks whether it takes an activation, and does not call it."""


def sources(cache):
    """name -> module -> functions, of every version that is at hand."""
    import torch

    roots = {VERSION: wheels.package(PACKAGE, VERSION, cache, tuple(FILES.values()))}
    roots |= {commit: os.path.join(cache, f"aiter-{commit}", "site") for commit in COMMITS}
    seen = filled(torch)
    return {name: {module: kernels.functions(root, (FILES[module],), NAMES[module], seen, dtypes=dtypes(torch)) for module in NAMES}
            for name, root in roots.items() if os.path.exists(root)}


def install(source):
    """Puts one version's modules into this process; what it lacks cannot be imported."""
    import torch

    for module, made in {**source, GEMM: {"flydsl_a16w4_gemm1": gemm_with_activation}, "aiter.dtypes": vars(dtypes(torch))}.items():
        sys.modules[module] = types.ModuleType(module)  # no package: else what it lacks would be sought beneath it
        vars(sys.modules[module]).update(made)
        parent, _, name = module.rpartition(".")
        setattr(importlib.import_module(parent), name, sys.modules[module])


def agreed(versions, convert):
    """The result of `convert` and the names of the versions that gave it, none where nothing of AITER was asked for; results must be equal.

    A version that lacks what the converter calls, or stops at these sizes, says nothing. Raises what the converter raises where every version does.
    """
    install({module: {} for module in NAMES})
    try:
        return convert(), []
    except ImportError as error:
        missing, stopped = error, None
    results = {}
    for name, source in versions.items():
        install(source)
        try:
            results[name] = convert()
        except ImportError:
            pass
        except Exception as error:
            stopped = error
    if not results:
        raise stopped or missing
    if any(made != next(iter(results.values())) for made in results.values()):
        raise RuntimeError(f"versions of AITER differ: {sorted(results)}")
    return next(iter(results.values())), sorted(results)
