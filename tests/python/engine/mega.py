"""Mega MoE's own class, for row.py: a model of two layers of experts, loaded by the class's weight_loader or by the plug-in."""
import json
import os
import types

LAYERS, EXPERTS, HIDDEN, INTER = 2, 4, 256, 128
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


def experts_of(rank, ranks):
    """The layers as the model makes them on one rank of expert parallelism."""
    import torch
    from vllm.model_executor.layers.fused_moe import deep_gemm_mega_moe as module

    module.check_deep_gemm_mega_moe_supported = lambda *a: None  # asks the device
    config = types.SimpleNamespace(scheduler_config=types.SimpleNamespace(max_num_batched_tokens=64),
                                   compilation_config=types.SimpleNamespace(static_forward_context={}))
    here = EXPERTS // ranks
    return torch.nn.ModuleList(module.DeepGemmMegaMoEExperts(
        config, num_experts=EXPERTS, num_local_experts=here, experts_start_idx=rank * here, top_k=1, hidden_size=HIDDEN, intermediate_size=INTER,
        activation=module.MegaMoEActivation("swiglu", clamp=10.0), weight_format=module.MEGA_MOE_MXFP4, prefix=f"model.layers.{number}.ffn.experts")
        for number in range(LAYERS))


def load(directory, layers):
    """What the model's load_weights does with the names that the loader gives it; how many tensors were read."""
    from safetensors import safe_open
    from vllm.model_executor.model_loader import weight_utils

    read = 0
    with safe_open(f"{directory}/model.safetensors", "pt") as file:
        for name in file.keys():
            if weight_utils.should_skip_weight(name, None):
                continue
            _, number, _, _, expert, word, kind = name.split(".")
            slot = NAMES[word] + ("_weight" if kind == "weight" else "_weight_scale")
            layers[int(number)].weight_loader(getattr(layers[int(number)], slot), file.get_tensor(name), slot, word, int(expert))
            read += 1
    return read


def loaded(directory, rank, ranks, blob=None, lines=None):
    """{"state", "read", "lines"} after vLLM's own load, or with the plug-in: `blob` a directory, or "" without one."""
    import contextlib

    from expert_state import add
    hook, patching = None, contextlib.nullcontext()
    if blob is not None:
        from mxfp4_repack.vllm.hook import Hook
        from mxfp4_repack.vllm.live import Origin
        from mxfp4_repack.vllm.patches import patched
        from mxfp4_repack.plugin.settings import Settings
        hook = Hook(Settings(blob, source="blob" if blob else "checkpoint", skip_raw=True), Origin(directory, load_format="auto"))
        patching = patched(hook)
    with patching:
        layers = experts_of(rank, ranks)
        addresses = [p.data_ptr() for p in layers.parameters()]
        read = load(directory, layers)
    if hook:
        hook.finish(layers)
    assert addresses == [p.data_ptr() for p in layers.parameters()]
    found = {}
    for name, parameter in layers.named_parameters():
        add(found, name, parameter)
    return {"state": found, "read": read, "lines": lines.clear() if lines else []}
