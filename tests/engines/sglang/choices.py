"""What SGLang chooses: the model's own override of --moe-runner-backend, the method class, its sizes, its loader and the branch of its
process_weights_after_loading, all out of a release's wheel, on meta tensors.

usage: choices.py ROOT DEVICE < INPUTS      an input a line: {"model": "gpt_oss", "runner": "auto", "tp": 1, "ep": false}; prints an answer a line
       choices.py --all VERSION=ROOT...     the whole grid of releases unpacked at these folders: ROOT/sglang; one JSON document

An answer is {"runner": resolved, "path": the function that takes the weights} or {"runner": ..., "error": type, "message": text}. The functions that take
them (flashinfer's, AITER's, triton_kernels', Marlin's preparation, DeepGEMM's) are stand-ins that say their name.
"""
import importlib
import json
import logging
import os
import sys
import types

import world
from world import Q, Scene

DEVICES = ("sm80", "sm89", "sm90", "sm100", "sm103", "sm120", "sm121", "gfx942", "gfx950", "cpu", "cpu-amx", "xpu")
ENVIRONMENTS = ({}, {"SGLANG_USE_AITER": "1"}, {"SGLANG_DSV4_FP4_DEQUANT": "1"}, {"SGLANG_USE_AITER": "1", "SGLANG_USE_AITER_MOE_GU_ITLV": "0"})
RUNNERS = ("auto", "triton_kernel", "flashinfer_mxfp4", "marlin", "deep_gemm", "humming", "triton", "aiter")
# E, H, I of the whole model, and its class as config.json names it.
MODELS = {
    "gpt_oss": ("GptOssForCausalLM", 8, 2880, 2880), "deepseek_v4": ("DeepseekV4ForCausalLM", 8, 4096, 2048),
    "deepseek_v4_odd": ("DeepseekV4ForCausalLM", 8, 4096, 2304), "kimi_k3": ("KimiK3ForConditionalGeneration", 8, 3584, 3072),
    "bailing_moe_v3": ("BailingMoeV3ForCausalLM", 8, 4096, 1024),
}


class Took(Exception):
    """A function that takes weights was reached."""


def taker(name):
    def took(*a, **k):
        raise Took(name)
    return took


def module(name, **values):
    made = types.ModuleType(name)
    made.__path__ = []
    vars(made).update(values)
    sys.modules[name] = made
    if "." in name:
        parent = name.rsplit(".", 1)
        setattr(sys.modules[parent[0]], parent[1], made)
    return made


def stand_ins():
    trtllm, sm120 = taker("flashinfer trtllm"), taker("flashinfer cutlass mxfp8")
    sm90 = {f"interleave_moe_{what}_for_sm90_mixed_gemm": taker("flashinfer cutlass sm90") for what in ("weights", "scales")}
    if Scene.is_("cuda"):
        module("flashinfer", nvfp4_block_scale_interleave=trtllm, block_scale_interleave=sm120, shuffle_matrix_a=trtllm, shuffle_matrix_sf_a=trtllm, mxfp8_quantize=None,
               **{name: None for name in ("trtllm_fp4_block_scale_moe", "trtllm_fp4_block_scale_routed_moe")})
        module("flashinfer.fused_moe", trtllm_fp4_block_scale_moe=None, trtllm_fp4_block_scale_routed_moe=None, cutlass_fused_moe=None, **sm90)
        module("flashinfer.fused_moe.core", get_w2_permute_indices_with_cache=trtllm, _maybe_get_cached_w3_w1_permute_indices=trtllm)
        module("flashinfer.fp4_quantization", block_scale_interleave=sm120, nvfp4_block_scale_interleave=trtllm)
    module("deep_gemm", transform_sf_into_required_layout=taker("deep_gemm"))
    if Scene.is_("hip"):
        aiter = taker("aiter")
        module("aiter")
        module("aiter.ops")
        module("aiter.ops.shuffle", **{name: aiter for name in ("shuffle_scale", "shuffle_scale_a16w4", "shuffle_weight", "shuffle_weight_a16w4", "moe_shuffle_scale", "moe_shuffle_weight")})
        module("aiter.ops.triton")
        module("aiter.ops.triton.quant", dynamic_mxfp4_quant=None)
        module("aiter.utility")
        module("aiter.utility.fp4_utils", e8m0_shuffle=aiter)
    for name in ("triton_kernels", "triton_kernels.numerics_details"):
        module(name)
    module("triton_kernels.numerics_details.mxfp", upcast_from_mxfp=taker("bf16"), MXFP_BLOCK_SIZE=32)
    for name in ("triton_kernels.matmul", "triton_kernels.matmul_ogs"):
        module(name, FlexCtx=None, PrecisionConfig=None)


def overridden(row):
    """--moe-runner-backend after the model's override."""
    architecture = MODELS[row["model"]][0]
    quantization = {"gpt_oss": {"quant_method": "mxfp4"}, "kimi_k3": {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"format": "mxfp4-pack-quantized"}}}}.get(row["model"], {"quant_method": "fp8"})
    model = types.SimpleNamespace(nvfp4_moe_meta=None, is_fp4_experts=row["model"] not in ("gpt_oss", "kimi_k3"), quantization="fp8", hf_config=None)
    config = types.SimpleNamespace(architectures=[architecture], quantization_config=quantization, model_type=row["model"])
    model.hf_config = config
    args = types.SimpleNamespace(moe_runner_backend=row["runner"], ep_size=row["tp"] if row["ep"] else 1, quantization=None, dtype="auto", moe_a2a_backend="none",
                                 swa_full_tokens_ratio=None, device="cuda" if Scene.device[0] in "sg" else Scene.device.split("-")[0], fp8_gemm_runner_backend="auto",
                                 is_attention_backend_not_set=lambda: False, get_model_config=lambda: model, kv_cache_dtype="auto")
    base = "sglang.srt.arg_groups.model_overrides."
    folder = os.path.join(Scene.root, *base.split("."))
    names = {"gpt_oss": ("gpt_oss", "_gpt_oss_overrides"), "kimi_k3": ("kimi_k3", "_kimi_k3_moe_runner_overrides"),
             "bailing_moe_v3": ("bailing_moe_v3", "_bailing_moe_v3_overrides")}.get(row["model"], ("deepseek_v4", "_deepseek_v4_overrides"))
    said = {}
    if os.path.isdir(folder):
        if os.path.exists(os.path.join(folder, names[0] + ".py")):
            (reads,), space = world.taken_out("arg_groups/model_override_base.py", "_is_mxfp4_pack_quantized")
            space["Any"] = object
            importlib.import_module("sglang.srt.arg_groups.model_override_base")._is_mxfp4_pack_quantized = reads
            said = getattr(importlib.import_module(base + names[0]), names[1])(args, config)
    elif row["model"] in ("gpt_oss", "deepseek_v4", "deepseek_v4_odd"):  # one file of overrides
        (first, second), space = world.taken_out("arg_groups/overrides.py", names[1], "_deepseek_v4_sm120_moe")
        space["envs"] = importlib.import_module("sglang.srt.environ").envs
        space["Any"] = space["Dict"] = dict
        said = first(args, config) if names[0] == "gpt_oss" else {}
        if names[0] == "deepseek_v4":
            said = second(args)
    return said.get("moe_runner_backend", row["runner"])


def method_of(row, layer):
    """The method class that the quantization's own configuration takes."""
    if row["model"] == "gpt_oss":
        config = importlib.import_module(Q + "mxfp4").Mxfp4Config.from_config({"quant_method": "mxfp4"})
        return config.get_quant_method(layer, "p")
    if row["model"] == "kimi_k3":
        return importlib.import_module(Q + "mxfp4").Mxfp4MoEMethod(prefix="p")
    fp8 = importlib.import_module(Q + "fp8")
    config = fp8.Fp8Config(is_checkpoint_fp8_serialized=True, weight_block_size=[128, 128], is_fp4_experts=True)
    # model_loader/loader.py gives it the variable
    config.dequant_fp4_to_fp8 = importlib.import_module("sglang.srt.environ").envs.SGLANG_DSV4_FP4_DEQUANT.get()
    return config.get_quant_method(layer, "p")


def make_layer(row):
    import torch

    moe = importlib.import_module("sglang.srt.layers.moe.fused_moe_triton").FusedMoE
    if not issubclass(moe, torch.nn.Module):
        moe = type("FusedMoE", (moe, torch.nn.Module), {"__init__": lambda self: torch.nn.Module.__init__(self)})
    _, experts, hidden, inter = MODELS[row["model"]]
    tp = 1 if row["ep"] else row["tp"]
    layer = moe()
    layer.num_experts, layer.num_local_experts = experts, experts // (row["tp"] if row["ep"] else 1)
    layer.hidden_size_unpadded = hidden
    if row["model"] == "gpt_oss" and Scene.runner == "flashinfer_mxfp4":
        hidden = world.round_up(hidden, 256)  # FusedMoE.__init__
    layer.hidden_size, layer.intermediate_size_per_partition = hidden, inter // tp
    layer.moe_tp_size, layer.moe_tp_rank, layer.moe_ep_rank = tp, 0, 0
    layer.moe_ep_size = row["tp"] if row["ep"] else 1
    layer.params_dtype = torch.bfloat16
    gpt_oss = row["model"] == "gpt_oss"
    layer.moe_runner_config = types.SimpleNamespace(
        gemm1_alpha=1.702 if gpt_oss else None, gemm1_clamp_limit=7.0 if gpt_oss else None, gate_up_interleaved=gpt_oss, activation="situ" if row["model"] == "kimi_k3" else "silu",
        is_gated=True, apply_router_weight_on_input=False, swiglu_limit=10.0, layer=layer)
    return layer


def load(row, layer):
    """gpt-oss's own loader and FusedMoE's copy, on the layer's parameters."""
    import torch

    _, experts, hidden, inter = MODELS["gpt_oss"]
    (loader,), space = world.taken_out("models/gpt_oss.py", "_load_mxfp4_experts_weights")
    (copy,), copy_space = world.taken_out("layers/moe/fused_moe_triton/layer.py", "weight_loader")
    copy_space["torch"] = space["torch"] = torch
    layer.quant_config = importlib.import_module(Q + "mxfp4").Mxfp4Config.from_config({"quant_method": "mxfp4"})
    for parameter in layer.parameters():
        parameter.weight_loader = lambda *a, **k: copy(layer, *a, **k)
    model = torch.nn.Module()
    model.experts = layer
    model.config = types.SimpleNamespace(intermediate_size=inter, num_local_experts=experts)
    space["math"] = __import__("math")
    space["default_weight_loader"] = None
    space["get_parallel"] = lambda: world.Loose(moe_tp_rank=0, moe_tp_size=layer.moe_tp_size, moe_ep_rank=0, moe_ep_size=layer.moe_ep_size)
    for name in ("moe_tp_rank", "moe_tp_size", "moe_ep_rank", "moe_ep_size"):
        value = getattr(layer, name)
        space["get_moe_" + name[4:]] = lambda value=value: value
        space["get_" + name] = lambda value=value: value
    weights = [("experts.gate_up_proj_blocks", (experts, 2 * inter, hidden // 32, 16)), ("experts.gate_up_proj_scales", (experts, 2 * inter, hidden // 32)),
               ("experts.down_proj_blocks", (experts, hidden, inter // 32, 16)), ("experts.down_proj_scales", (experts, hidden, inter // 32))]
    loader(model, [(name, torch.empty(shape, dtype=torch.uint8, device="meta")) for name, shape in weights])


def process(row, method, layer):
    import torch

    oss = importlib.import_module(Q + "mxfp4")
    oss._swizzle_mxfp4 = taker("triton")
    oss._amx_process_weight_after_loading = taker("amx")
    importlib.import_module(Q + "utils").reorder_w1w3_to_w3w1 = lambda *both: both  # meta tensors of this type cannot be joined
    marlin = importlib.import_module(Q + "marlin_utils_fp4")
    marlin.prepare_moe_mxfp4_layer_for_marlin = marlin.deinterleave_moe_mxfp4_w13_for_marlin = taker("marlin")
    if type(method).__name__ == "Fp8MoEMethod":
        if Scene.is_("hip") and not method.dequant_fp4_to_fp8:
            method.process_weights_after_loading_block_quant(layer)
        return "fp8"
    if hasattr(method, "_fp8"):
        method._fp8.process_weights_after_loading = lambda layer: None  # Fp8MoEMethod: a view, outside an all-to-all
    if "Humming" in type(method).__name__:
        return "humming"
    method.moe_runner_config = layer.moe_runner_config
    method.runner = types.SimpleNamespace(config=layer.moe_runner_config)
    method.process_weights_after_loading(layer)
    return "as loaded"


def simple_fp8(self, layer, num_experts, hidden_size, intermediate_size_per_partition, params_dtype, with_bias=False, fp4_scale_dtype=None, **attrs):
    """The parameters of Fp8MoEMethod with FP4 experts."""
    import torch

    scale = fp4_scale_dtype or torch.float32
    sizes = {"w13_weight": (2 * intermediate_size_per_partition, hidden_size // 2, torch.int8), "w2_weight": (hidden_size, intermediate_size_per_partition // 2, torch.int8),
             "w13_weight_scale_inv": (2 * intermediate_size_per_partition, hidden_size // 32, scale), "w2_weight_scale_inv": (hidden_size, intermediate_size_per_partition // 32, scale)}
    for name, (rows, columns, kind) in sizes.items():
        layer.register_parameter(name, torch.nn.Parameter(torch.empty(num_experts, rows, columns, dtype=kind), requires_grad=False))


def answer(row):
    import torch

    out = {"runner": row["runner"]}
    try:
        Scene.runner = out["runner"] = overridden(row)
        layer = make_layer(row)
        importlib.import_module(Q + "fp8").Fp8MoEMethod.create_weights = simple_fp8
        with torch.device("meta"):
            method = method_of(row, layer)
            out["method"] = type(method).__name__
            gpt_oss = row["model"] == "gpt_oss"
            method.create_weights(layer, layer.num_local_experts, layer.hidden_size, layer.intermediate_size_per_partition, torch.bfloat16, **({"with_bias": True} if gpt_oss else {}))
            if gpt_oss:
                load(row, layer)
            out["path"] = process(row, method, layer)
    except Took as took:
        out["path"] = str(took)
    except Exception as error:  # what SGLang says
        out["error"], out["message"] = type(error).__name__, str(error)
    return out


def inputs():
    """The grid of one device: (environment, rows)."""
    for environment in ENVIRONMENTS:
        rows = []
        for model in MODELS:
            for runner in RUNNERS:
                for tp, ep in ((1, False), (2, False), (4, False), (8, False), (2, True), (8, True)):
                    rows.append({"model": model, "runner": runner, "tp": tp, "ep": ep})
        yield environment, rows


def run(root, device, rows):
    logging.disable(logging.CRITICAL)
    world.install(root, device)
    stand_ins()
    return [answer(row) for row in rows]


def asked(root, device, environment, rows):
    """The answers of a process of its own, which has torch already."""
    import torch  # noqa: F401: the parent imports it once

    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.environ.update(environment)
        with os.fdopen(writing, "w") as out:
            json.dump(run(root, device, rows), out)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answers:
        text = answers.read()
    if os.waitpid(child, 0)[1] != 0:
        raise RuntimeError(f"{root} {device} {environment}: no answer")
    return json.loads(text)


def all_of(roots):
    out = {"releases": {}}
    for named in roots:
        version, root = named.split("=", 1)
        answers = []
        for device in DEVICES:
            for environment, rows in inputs():
                aiter = "SGLANG_USE_AITER" in environment
                if aiter != device.startswith("gfx") and environment and "SGLANG_DSV4_FP4_DEQUANT" not in environment:
                    continue
                got = asked(root, device, environment, rows)
                answers += [{"device": device, "env": environment, **row, "answer": one} for row, one in zip(rows, got)]
        out["releases"][version] = answers
    return out


if __name__ == "__main__":
    if sys.argv[1] == "--all":
        json.dump(all_of(sys.argv[2:]), sys.stdout)
    else:
        for one in run(*sys.argv[1:3], [json.loads(line) for line in sys.stdin]):
            print(json.dumps(one))
