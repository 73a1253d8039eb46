"""Executes process_weights_after_loading of SGLang's method classes on drawn layers and digests what it leaves.

usage: layouts.py CACHE ROOT KERNELS FLASHINFER > RESULT     ROOT: the unpacked sglang wheel, KERNELS: the unpacked sglang-kernel wheel
       layouts.py CACHE ROOT KERNELS FLASHINFER ROW          one row, in this process
FLASHINFER is the version that the release pins.

The layers are those of sample.py: the same seeds give the same bytes in the unit tests. Sizes that are no multiples show the padding.
"""
import importlib
import json
import os
import subprocess
import sys
import types

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE), os.path.join(HERE, "..", "..", "..", "scripts", "python")]

import choices
import world
from world import Q, Scene

SIZES = ((7101, 2, 256, 256), (7103, 3, 512, 128), (7104, 1, 768, 640), (7105, 2, 480, 224), (7106, 1, 2880, 192), (7107, 1, 320, 2880))
# name: device, runner, class, the program's backend, variables
SEPARATED = {"SGLANG_USE_AITER_MOE_GU_ITLV": "0"}
ROWS = {
    "gpt_oss/sm80/triton_kernel": ("sm80", "triton_kernel", "oss", "TRITON"),
    "gpt_oss/sm90/triton_kernel": ("sm90", "triton_kernel", "oss", "TRITON"),
    "gpt_oss/sm100/triton_kernel": ("sm100", "triton_kernel", "oss", "TRITON"),
    "gpt_oss/sm90/flashinfer_mxfp4": ("sm90", "flashinfer_mxfp4", "oss", "FLASHINFER_CUTLASS_MXFP4_BF16"),
    "gpt_oss/sm100/flashinfer_mxfp4": ("sm100", "flashinfer_mxfp4", "oss", "FLASHINFER_TRTLLM_MXFP4_MXFP8"),
    "gpt_oss/sm120/flashinfer_mxfp4": ("sm120", "flashinfer_mxfp4", "oss", "FLASHINFER_CUTLASS_MXFP4_MXFP8"),
    "gpt_oss/gfx950/auto": ("gfx950", "auto", "oss", "AITER_MXFP4_BF16"),
    "compressed_tensors/sm90/flashinfer_mxfp4": ("sm90", "flashinfer_mxfp4", "ct", "FLASHINFER_CUTLASS_MXFP4_BF16"),
    "compressed_tensors/sm100/flashinfer_mxfp4": ("sm100", "flashinfer_mxfp4", "ct", "FLASHINFER_TRTLLM_MXFP4_MXFP8"),
    "compressed_tensors/sm90/marlin": ("sm90", "marlin", "ct", "MARLIN"),
    "fp4_experts/sm90/flashinfer_mxfp4": ("sm90", "flashinfer_mxfp4", "cutlass", "FLASHINFER_CUTLASS_MXFP4_BF16"),
    "fp4_experts/sm100/flashinfer_mxfp4": ("sm100", "flashinfer_mxfp4", "trtllm", "FLASHINFER_TRTLLM_MXFP4_MXFP8"),
    "fp4_experts/sm120/flashinfer_mxfp4": ("sm120", "flashinfer_mxfp4", "cutlass", "FLASHINFER_CUTLASS_MXFP4_MXFP8"),
    "fp4_experts/sm90/marlin": ("sm90", "marlin", "marlin", "MARLIN"),
    "fp4_experts/sm120/marlin": ("sm120", "marlin", "marlin", "MARLIN"),
    "fp4_experts/gfx950/auto": ("gfx950", "auto", "fp8", "AITER_MXFP4_BF16"),
    "fp4_experts/gfx950/separated": ("gfx950", "auto", "fp8", "AITER_MXFP4_BF16", SEPARATED),
    "compressed_tensors/gfx950/auto": ("gfx950", "auto", "ct", "AITER_MXFP4_BF16"),
    "compressed_tensors/gfx950/a4w4": ("gfx950", "auto", "ct", "AITER_MXFP4_BF16", {"AITER_SITUV2_A4W4": "1"}),
}
CLASSES = {"trtllm": ("mxfp4_flashinfer_trtllm_moe", "Mxfp4FlashinferTrtllmMoEMethod"),
           "cutlass": ("mxfp4_flashinfer_cutlass_moe", "Mxfp4FlashinferCutlassMoEMethod"), "marlin": ("mxfp4_marlin_moe", "Mxfp4MarlinMoEMethod")}
NAMES = ("w13_weight", "w2_weight", "w13_weight_scale", "w2_weight_scale", "w13_bias", "w2_bias")


def prepare(device, flashinfer, cache):
    """The packages that the path calls: flashinfer's functions out of its wheel, AITER's out of its own; what only kernels call is None."""
    if device.startswith("sm"):
        import kernels

        kernels.install_flashinfer(flashinfer, cache)
        top = sys.modules["flashinfer"]
        for name in ("flashinfer.fp4_quantization", "flashinfer.fused_moe.core", "flashinfer.fused_moe"):
            vars(top).update({key: value for key, value in vars(sys.modules[name]).items() if not key.startswith("__")})
        for at in (top, sys.modules["flashinfer.fused_moe"]):
            for name in ("shuffle_matrix_a", "shuffle_matrix_sf_a", "mxfp8_quantize", "trtllm_fp4_block_scale_moe", "trtllm_fp4_block_scale_routed_moe", "cutlass_fused_moe"):
                setattr(at, name, None)
        # triton_kernels asks Triton for the GPU.
        from triton.backends.compiler import GPUTarget
        import triton.language.target_info as info
        info.current_target = lambda: GPUTarget("cuda", int(device[2:]), 32)
    else:
        import aiter_source

        for parent in ("aiter", "aiter.ops", "aiter.ops.triton", "aiter.ops.triton.utils", "aiter.utility", "aiter.ops.flydsl", "aiter.ops.flydsl.kernels"):
            choices.module(parent)
        # The newest commit at hand: PyPI's version has no shuffle_scale.
        versions = aiter_source.sources(cache)
        aiter_source.install(next((versions[name] for name in reversed(aiter_source.COMMITS) if name in versions), versions[aiter_source.VERSION]))
        choices.module("aiter.ops.triton.quant", dynamic_mxfp4_quant=None)
        for name in ("shuffle_scale", "moe_shuffle_scale", "moe_shuffle_weight"):
            if not hasattr(sys.modules["aiter.ops.shuffle"], name):
                setattr(sys.modules["aiter.ops.shuffle"], name, None)


def marlin_repack(b_q_weight, perm, size_k, size_n, num_bits):
    """gptq_marlin_repack by SGLang's own Python statement of it."""
    import torch

    statement = importlib.import_module("sglang.test.test_marlin_utils")
    codes = torch.stack([(b_q_weight >> (4 * i)) & 15 for i in range(8)], 1).reshape(size_k, size_n)
    return statement.marlin_weights(codes, size_k, size_n, 4, statement.get_weight_perm(4))


def play(row, root, kernels_root, flashinfer, cache):
    import torch

    device, runner, kind = ROWS[row][:3]
    sys.path.insert(0, kernels_root)
    world.install(root, device)
    Scene.runner = runner
    prepare(device, flashinfer, cache)
    if device.startswith("sm"):
        fp4 = importlib.import_module(Q + "marlin_utils_fp4")
        fp4.gptq_marlin_repack = marlin_repack
        for module in (fp4, importlib.import_module(Q + "marlin_utils")):
            module.marlin_make_workspace = lambda *a, **k: torch.zeros(4, dtype=torch.int32)
    return kind


def situ(kind):
    """Kimi-K3 has this activation, and AITER's path asks for it."""
    return kind == "ct" and Scene.is_("hip")


class Fp8Base:
    """Fp8MoEMethod with FP4 experts: its parameters. Outside an all-to-all its post-load makes a view."""

    def create_weights(self, layer, *sizes, **attrs):
        choices.simple_fp8(self, layer, *sizes, **attrs)

    def process_weights_after_loading(self, layer):
        pass


def layer_and_method(kind, experts, hidden, inter, tp=(0, 1), ep=(0, 1), name="model.layers.0.mlp.experts"):
    """A layer as FusedMoE makes it for one rank, (rank, ranks) of each kind, and its method. inter: of the rank."""
    import torch

    gpt_oss = kind == "oss"
    layer = torch.nn.Module()
    layer.num_local_experts = layer.num_experts = experts
    layer.hidden_size_unpadded = hidden
    if gpt_oss and Scene.runner == "flashinfer_mxfp4":
        hidden = world.round_up(hidden, 256)  # FusedMoE.__init__
    layer.hidden_size, layer.intermediate_size_per_partition = hidden, inter
    layer.layer_name, layer.params_dtype = name, torch.bfloat16
    (layer.moe_tp_rank, layer.moe_tp_size), (layer.moe_ep_rank, layer.moe_ep_size) = tp, ep
    layer.num_experts, layer.num_fused_shared_experts, layer.is_draft = experts * ep[1], 0, False
    layer.moe_runner_config = types.SimpleNamespace(
        gemm1_alpha=1.702 if gpt_oss else None, gemm1_clamp_limit=7.0 if gpt_oss else None, gate_up_interleaved=gpt_oss, activation="situ" if situ(kind) else "silu", is_gated=True,
        apply_router_weight_on_input=False, swiglu_limit=None, layer=layer)
    if kind in ("oss", "ct"):
        layer.quant_method = method = importlib.import_module(Q + "mxfp4").Mxfp4MoEMethod(prefix="p")
        method.create_weights(layer, experts, hidden, inter, torch.bfloat16, with_bias=gpt_oss)
    elif kind == "fp8":
        fp8 = importlib.import_module(Q + "fp8")
        layer.quant_method = method = fp8.Fp8MoEMethod(fp8.Fp8Config(is_checkpoint_fp8_serialized=True, weight_block_size=[128, 128], is_fp4_experts=True))
        choices.simple_fp8(method, layer, experts, hidden, inter, torch.bfloat16, fp4_scale_dtype=torch.float8_e8m0fnu)
        method.process_weights_after_loading = method.process_weights_after_loading_block_quant
    else:
        module, name = CLASSES[kind]
        layer.quant_method = method = getattr(importlib.import_module(Q + module), name)(Fp8Base(), "p")
        method.create_weights(layer, experts, hidden, inter, torch.bfloat16)
        method.runner = types.SimpleNamespace(config=layer.moe_runner_config)
    method.moe_runner_config = layer.moe_runner_config
    return layer, method


def place(target, data):
    import torch

    if target.dtype == torch.float32 and data.dtype == torch.uint8:  # scales by value
        data = data.view(torch.float8_e8m0fnu).float()
    if target.dtype.itemsize == 1:
        target, data = target.view(torch.uint8), data.view(torch.uint8)
    target.copy_(data)


def loaded(kind, layer, drawn):
    """What the weight loaders write: gpt-oss's a copy into the leading part, the generic one each half of w13 at its own place, up first for CUTLASS."""
    for name, parameter in list(layer.named_parameters()):
        data = drawn.get(name.replace("weight_bias", "bias").replace("_scale_inv", "_scale"))
        if data is None:
            continue
        rest = tuple(slice(0, n) for n in data.shape[2:])
        if kind == "oss" or not name.startswith("w13"):
            place(parameter.data[(slice(None), slice(0, data.shape[1]), *rest)], data)
            continue
        half, room = data.shape[1] // 2, parameter.shape[1] // 2
        for i, at in enumerate((room, 0) if kind == "cutlass" else (0, room)):
            place(parameter.data[(slice(None), slice(at, at + half), *rest)], data[:, i * half:(i + 1) * half])


def results(layer, method):
    import sample

    made = {}
    for name in NAMES:
        base = name.split("_")[0]
        value = getattr(layer, name.replace("_bias", "_weight_bias"), None)
        if name.endswith("scale"):
            value = getattr(layer, name + "_inv", None) if value is None else value
            value = vars(method).get(base + "_precision_config", value)
        if name.endswith("weight"):
            value = vars(method).get(base + "_weight_triton_tensor", value)
        if value is not None:
            made[name] = sample.described(value)
    return made


def run(row, root, kernels_root, flashinfer, cache):
    import torch
    import sample

    kind = play(row, root, kernels_root, flashinfer, cache)
    device, _, _, backend, *env = ROWS[row]
    for seed, experts, hidden, inter in SIZES:
        inputs = {"seed": seed, "E": experts, "H": hidden, "I": inter, "bias": kind == "oss", "backend": backend}
        answer = {"row": row, "arch": device, "family": "gpt_oss" if kind == "oss" else "generic", "class": kind, **({"env": env[0]} if env else {}), **({"activation": "situ"} if situ(kind) else {}), **inputs}
        try:
            drawn = sample.as_torch(torch, sample.drawn(inputs), "cpu")
            # Memory that SGLang and triton_kernels leave as they find it holds zeros here.
            fresh, strided = torch.empty, torch.empty_strided
            torch.empty = lambda *a, **k: fresh(*a, **k).zero_()
            torch.empty_strided = lambda *a, **k: strided(*a, **k).zero_()
            try:
                layer, method = layer_and_method(kind, experts, hidden, inter)
                loaded(kind, layer, drawn)
                method.process_weights_after_loading(layer)
            finally:
                torch.empty, torch.empty_strided = fresh, strided
            out = results(layer, method)
            if kind != "oss":  # biases of zeros, which the checkpoint does not have
                out = {name: value for name, value in out.items() if "bias" not in name}
            answer["out"] = out
        except Exception as error:  # what SGLang says of sizes that it does not take
            answer["error"] = f"{type(error).__name__}: {error}"
        print(json.dumps(answer), flush=True)


def main():
    cache, root, kernels_root, flashinfer, *rows = sys.argv[1:]
    if rows:
        return run(rows[0], root, kernels_root, flashinfer, cache)
    oldest = not os.path.isdir(os.path.join(root, "sglang", "srt", "arg_groups", "model_overrides"))
    for row in ROWS:
        if oldest and (row.startswith("compressed_tensors") or row == "gpt_oss/sm120/flashinfer_mxfp4"):
            continue  # 0.5.16 has no such path
        known = {**os.environ, **({"SGLANG_USE_AITER": "1"} if "gfx" in row else {}), **(ROWS[row][4] if len(ROWS[row]) > 4 else {})}
        done = subprocess.run([sys.executable, os.path.abspath(__file__), cache, root, kernels_root, flashinfer, row], env=known, stdout=subprocess.PIPE, text=True)
        sys.stdout.write(done.stdout)
        if done.returncode:
            print(f"{row}: exit status {done.returncode}", file=sys.stderr)


if __name__ == "__main__":
    main()
