"""Mega MoE's own class, for row.py: a model of two layers of experts, loaded by the class's weight_loader or by the plug-in; up to 0.32 it
converts afterwards."""
import importlib
import importlib.util
import json
import os
import sys
import types

LAYERS, EXPERTS, HIDDEN, INTER = 2, 4, 256, 512  # 0.30.0 pads I to a multiple of 512, and the class is left alone then
NAMES = {"w1": "w13", "w3": "w13", "w2": "w2"}


def make(name):
    """A DeepSeek-V4 checkpoint of experts only."""
    import torch
    from safetensors.torch import save_file

    draw, tensors = torch.Generator().manual_seed(3), {}
    for layer, expert in ((layer, expert) for layer in range(LAYERS) for expert in range(EXPERTS)):
        for word, rows, columns in (("w1", INTER, HIDDEN), ("w3", INTER, HIDDEN), ("w2", HIDDEN, INTER)):
            base = f"layers.{layer}.ffn.experts.{expert}.{word}"
            tensors[f"{base}.weight"] = torch.randint(0, 256, (rows, columns // 2), generator=draw, dtype=torch.uint8).view(torch.int8)
            tensors[f"{base}.scale"] = torch.randint(118, 126, (rows, columns // 32), generator=draw, dtype=torch.uint8).view(torch.float8_e8m0fnu)
    os.mkdir(name)
    save_file(tensors, f"{name}/model.safetensors", metadata={"format": "pt"})
    with open(f"{name}/config.json", "w") as file:
        json.dump({"architectures": ["DeepseekV4ForCausalLM"], "model_type": "deepseek_v4", "hidden_size": HIDDEN, "moe_intermediate_size": INTER,
                   "num_hidden_layers": LAYERS, "n_routed_experts": EXPERTS, "n_shared_experts": 1, "num_experts_per_tok": 1, "num_nextn_predict_layers": 0,
                   "norm_topk_prob": True, "scoring_func": "sqrtsoftplus", "topk_method": "noaux_tc", "expert_dtype": "fp4", "hidden_act": "silu",
                   "quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3", "scale_fmt": "ue8m0",
                                           "weight_block_size": [128, 128]}}, file)
    return os.path.abspath(name)


DEEPSEEK, KIMI, AITER = "DeepSeek-V4", "Kimi-K3", "AITER"  # whose class


def experts_of(rank, ranks, whose):
    """The layers as the model makes them on one rank of expert parallelism."""
    import torch

    config = types.SimpleNamespace(scheduler_config=types.SimpleNamespace(max_num_batched_tokens=64),
                                   compilation_config=types.SimpleNamespace(static_forward_context={}))
    here = EXPERTS // ranks
    words = {"num_experts": EXPERTS, "top_k": 1, "hidden_size": HIDDEN, "intermediate_size": INTER}
    if whose != AITER:
        words |= {"num_local_experts": here, "experts_start_idx": rank * here}
    kind, more = kind_of(whose, rank, ranks)
    return torch.nn.ModuleList(kind(config, **words, **more, prefix=f"model.layers.{number}.ffn.experts") for number in range(LAYERS))


def kind_of(whose, rank, ranks):
    """The class, and more words of its constructor."""
    if whose == AITER:
        import aiter_mega

        return aiter_mega.kind(rank, ranks)
    return loading() if loads_ready() else converting(whose)


def loads_ready():
    """Whether the release loads kernel-ready weights, as 0.33.0 does."""
    name = "vllm.model_executor.layers.fused_moe.deep_gemm_mega_moe"
    return importlib.util.find_spec(name) is not None and hasattr(importlib.import_module(name), "DeepGemmMegaMoEExperts")


def has_kimi():
    """Whether Kimi-K3's class converts by itself, from 0.27 to 0.32."""
    return not loads_ready() and all(importlib.util.find_spec(name) for name in ("vllm.models", "vllm.models.kimi_k3"))


def loading():
    """The class of 0.33.0 and later."""
    from vllm.model_executor.layers.fused_moe import deep_gemm_mega_moe as module

    module.check_deep_gemm_mega_moe_supported = lambda *a: None  # asks the device
    return module.DeepGemmMegaMoEExperts, {"activation": module.MegaMoEActivation("swiglu", clamp=10.0), "weight_format": module.MEGA_MOE_MXFP4}


def converting(whose):
    """The models' own classes up to 0.32, with the compiled part of their conversion by its definition."""
    import torch

    def packed(scales, rows, columns, recipe, groups):
        """Scales as exponents, four to a word, the rows contiguous."""
        assert scales.dtype == torch.float32 and scales.shape == (groups, rows, columns // 32) and recipe == (1, 32)
        bytes_ = (scales.contiguous().view(torch.int32) >> 23).to(torch.uint8).contiguous()
        return bytes_.view(torch.int32).transpose(1, 2).contiguous().transpose(1, 2)

    deep_gemm = types.SimpleNamespace(transform_sf_into_required_layout=packed, transform_weights_for_mega_moe=vendored_transform())
    importlib.import_module("vllm.utils.deep_gemm")._import_deep_gemm = lambda *a: deep_gemm
    sys.modules["vllm.third_party.deep_gemm"] = importlib.import_module("vllm.third_party").deep_gemm = deep_gemm  # 0.22 imports it
    places = ("vllm.models.deepseek_v4.nvidia.model", "vllm.model_executor.models.deepseek_v4")  # the second up to 0.21
    module = importlib.import_module(places[importlib.util.find_spec("vllm.models") is None])
    kind = module.DeepseekV4MegaMoEExperts
    backends = sys.modules.get("vllm.model_executor.layers.fused_moe.deep_gemm_mega_moe")
    if backends is not None:  # 0.32: the transform lives in a backend
        backends._import_deep_gemm = lambda *a: deep_gemm
        kind._ensure_backend = lambda self: backends.DeepGemmSm100MegaMoEBackend()
    kind._check_runtime_supported = lambda *a: None
    if whose != KIMI:
        return kind, {}
    return importlib.import_module("vllm.models.kimi_k3.nvidia.model").KimiK3MegaMoEExperts, {
        "activation": "situ", "activation_beta": 4.0, "activation_linear_beta": 25.0}


def vendored_transform():
    """transform_weights_for_mega_moe of the wheel's DeepGEMM, which is plain Python beside a compiled part."""
    import vllm

    path = os.path.join(os.path.dirname(vllm.__file__), "third_party", "deep_gemm", "mega", "__init__.py")
    sys.modules.setdefault("deep_gemm_of_the_wheel", types.ModuleType("deep_gemm_of_the_wheel")).__path__ = []
    for name in ("_C", "utils", "utils.math"):
        sys.modules.setdefault(f"deep_gemm_of_the_wheel.{name}", Anything(f"deep_gemm_of_the_wheel.{name}"))
    spec = importlib.util.spec_from_file_location("deep_gemm_of_the_wheel.mega", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.transform_weights_for_mega_moe


class Anything(types.ModuleType):
    """A module with every name."""

    __path__ = ()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *a, **k: None


def load(directory, layers):
    """What the model's load_weights does with the names that the loader gives it; how many tensors were read."""
    import torch
    from safetensors import safe_open
    from vllm.model_executor.model_loader import weight_utils

    read, ready = 0, not hasattr(layers[0], "finalize_weights")
    with safe_open(f"{directory}/model.safetensors", "pt") as file:
        for name in file.keys():
            if weight_utils.should_skip_weight(name, None):
                continue
            _, number, _, _, expert, word, kind = name.split(".")
            slot = NAMES[word] + ("_weight" if kind == "weight" else "_weight_scale")
            tensor = file.get_tensor(name) if ready else file.get_tensor(name).view(torch.uint8)  # as load_weights does
            layers[int(number)].weight_loader(getattr(layers[int(number)], slot), tensor, slot, word, int(expert))
            read += 1
    return read


def started(directory, rank, ranks, blob, whose):
    """(layers, tensors that vLLM read) of vLLM's own load, or of the plug-in's: `blob` a directory, or "" without one."""
    import contextlib

    kind_of(whose, rank, ranks)  # imports what is patched
    hook, patching = None, contextlib.nullcontext()
    if blob is not None:
        from mxfp4_repack.vllm.hook import Hook
        from mxfp4_repack.vllm.live import Origin
        from mxfp4_repack.vllm.patches import patched
        from mxfp4_repack.plugin.settings import Settings
        hook = Hook(Settings(blob, source="blob" if blob else "checkpoint", skip_raw=True), Origin(directory, load_format="auto"))
        patching = patched(hook)
    with patching:
        layers = experts_of(rank, ranks, whose)
        addresses = [p.data_ptr() for p in layers.parameters()]
        read = load(directory, layers)
        for layer in layers:
            if hasattr(layer, "finalize_weights"):
                layer.finalize_weights()
    if hook:
        hook.finish(layers)
    assert hasattr(layers[0], "finalize_weights") or addresses == [p.data_ptr() for p in layers.parameters()]
    return layers, read


def loaded(directory, rank, ranks, blob=None, lines=None, whose=DEEPSEEK):
    """{"state", "read", "lines"} after started()."""
    from expert_state import add

    layers, read = started(directory, rank, ranks, blob, whose)
    found = {}
    for name, tensor in [*layers.named_parameters(), *layers.named_buffers()]:
        add(found, name, tensor)
    for number, layer in enumerate(layers):
        for name in ("_transformed_l1_weights", "_transformed_l2_weights"):
            for part, tensor in zip(("codes", "scales"), getattr(layer, name, None) or ()):
                add(found, f"{number}.{name}.{part}", tensor)
        found[f"{number}: raw"] = [name for name in vars(layer)["_parameters"] if getattr(layer, name) is not None]
    return {"state": found, "read": read, "lines": lines.clear() if lines else []}
