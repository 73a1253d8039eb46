"""Checkpoints of one layer of drawn experts, as gpt-oss and DeepSeek-V4 publish them, and blobs of them."""
import json
import os
import struct
import subprocess

CONFIGS = {
    "gpt_oss": {"architectures": ["GptOssForCausalLM"], "quantization_config": {"quant_method": "mxfp4"}},
    "deepseek_v4": {"architectures": ["DeepseekV4ForCausalLM"], "quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}, "expert_dtype": "fp4"},
    "kimi_k3": {"architectures": ["KimiK3ForConditionalGeneration"], "hidden_act": "situ", "quantization_config": {
        "quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized", "config_groups": {"group_0": {
            "targets": ["Linear"], "format": "mxfp4-pack-quantized", "weights": {"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32, "symmetric": True}}}}},
}


def save(path, tensors):
    """tensors: name -> (type, torch tensor of whole bytes)."""
    import torch

    header, at = {}, 0
    for name, (kind, tensor) in tensors.items():
        size = tensor.numel() * tensor.element_size()
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for _, tensor in tensors.values():
            out.write(tensor.contiguous().reshape(-1).view(torch.uint8).numpy())


def tensors_of(kind, drawn, layer=0):
    """The published tensors of the drawn experts of a layer."""
    experts, rows, half = drawn["w13_weight"].shape
    inter, hidden = rows // 2, half * 2
    if kind == "oss":
        p = f"model.layers.{layer}.mlp.experts."
        return {p + "gate_up_proj_blocks": ("U8", drawn["w13_weight"].reshape(experts, rows, hidden // 32, 16)), p + "gate_up_proj_scales": ("U8", drawn["w13_weight_scale"]),
                p + "gate_up_proj_bias": ("BF16", drawn["w13_bias"]), p + "down_proj_blocks": ("U8", drawn["w2_weight"].reshape(experts, hidden, inter // 32, 16)),
                p + "down_proj_scales": ("U8", drawn["w2_weight_scale"]), p + "down_proj_bias": ("BF16", drawn["w2_bias"])}
    made = {}
    kimi = kind == "ct"
    prefix, weight, scale = (f"model.layers.{layer}.mlp", "weight_packed", "weight_scale") if kimi else (f"layers.{layer}.ffn", "weight", "scale")
    for e in range(experts):
        for name, proj, slot, first, last in (("w1", "gate", "w13", 0, inter), ("w3", "up", "w13", inter, rows), ("w2", "down", "w2", 0, hidden)):
            p = f"{prefix}.experts.{e}." + (f"{proj}_proj." if kimi else f"{name}.")
            made[p + weight] = ("U8" if kimi else "I8", drawn[slot + "_weight"][e, first:last])
            made[p + scale] = ("U8" if kimi else "F8_E8M0", drawn[slot + "_weight_scale"][e, first:last])
    return made


def write_model(kind, folder, drawn, sizes, version, row, layers=1, flags=()):
    """(model directory, blob directory), or (the program's error line, None)."""
    import torch

    experts, hidden, inter = sizes
    model, blob = os.path.join(folder, "model"), os.path.join(folder, "blob")
    os.makedirs(model, exist_ok=True)
    name = {"oss": "gpt_oss", "ct": "kimi_k3"}.get(kind, "deepseek_v4")
    config = {**CONFIGS[name], "model_type": name, "hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": 64, "num_key_value_heads": 8,
              "num_experts_per_tok": 1, "vocab_size": 128, "torch_dtype": "bfloat16"}
    config |= {"num_local_experts": experts, "intermediate_size": inter} if name == "gpt_oss" else {"n_routed_experts": experts, "moe_intermediate_size": inter}
    with open(os.path.join(model, "config.json"), "w") as out:
        json.dump(config, out)
    tensors = {"model.norm.weight": ("BF16", torch.ones(hidden, dtype=torch.bfloat16))}
    for layer in range(layers):
        tensors |= tensors_of(kind, drawn, layer)
    save(os.path.join(model, "model.safetensors"), tensors)
    device, _, _, backend, *_ = row
    ran = subprocess.run([os.environ["BIN"], "convert", model, "-o", blob, "--quiet", "--compress", "none", "--arch", device, "--backend", backend,
                          "--revision", f"sglang-{version}", *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if ran.returncode:
        return next((line for line in ran.stderr.splitlines() if "error:" in line), ran.stderr.strip()), None
    return model, blob
