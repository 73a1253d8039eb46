"""Checkpoints of other method classes than gpt-oss's, for row.py: a small Qwen3 MoE whose experts are MXFP4 in each way that vLLM names."""
import json
import os

LAYERS, EXPERTS, HIDDEN, INTER = 2, 8, 320, 352
HEADS, KV_HEADS, HEAD_DIM, VOCABULARY = 4, 2, 64, 512

_WEIGHTS = {"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32, "symmetric": True, "dynamic": False}
_FP8 = {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": True, "symmetric": True}
_FP4 = {**_WEIGHTS, "dynamic": True}
_MX = {"ch_axis": -1, "dtype": "fp4", "group_size": 32, "is_dynamic": False, "qscheme": "per_group", "scale_format": "e8m0", "scale_type": "float",
       "round_method": "half_even", "observer_cls": "PerBlockMXObserver", "symmetric": None}


def _compressed_tensors(inputs):
    group = {"weights": _WEIGHTS, "input_activations": inputs, "output_activations": None, "targets": ["Linear"]}
    return {"quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized", "quantization_status": "compressed",
            "config_groups": {"group_0": {**group, "format": "mxfp4-pack-quantized"}}, "ignore": ["lm_head", "re:.*self_attn.*", "re:.*mlp.gate$"]}


def _quark(inputs):
    return {"quant_method": "quark", "exclude": ["lm_head", "re:.*self_attn.*", "re:.*mlp.gate$"], "layer_quant_config": {}, "layer_type_quant_config": {},
            "export": {"kv_cache_group": [], "pack_method": "reorder", "weight_format": "real_quantized"}, "quant_mode": "eager_mode", "version": "0.10",
            "global_quant_config": {"weight": _MX, "input_tensors": inputs, "output_tensors": None, "bias": None}}


_PLAIN = {"bits": 16, "group_size": -1, "sym": True}
_AUTOROUND = {"quant_method": "auto-round", "bits": 4, "group_size": 32, "sym": True, "data_type": "mx_fp", "packing_format": "auto_round:llm_compressor",
              "extra_config": {".*self_attn.*": _PLAIN, ".*mlp\\.gate$": _PLAIN, "lm_head": _PLAIN}}

# What a checkpoint says -> (its quantization_config, the ending of the names of its packed weights).
QUANTIZATIONS = {
    "mxfp4": ({"quant_method": "mxfp4"}, "weight"),
    "compressed-tensors W4A16": (_compressed_tensors(None), "weight_packed"),
    "compressed-tensors W4A8": (_compressed_tensors(_FP8), "weight_packed"),
    "compressed-tensors W4A4": (_compressed_tensors(_FP4), "weight_packed"),
    "AutoRound": (_AUTOROUND, "weight_packed"),
    "Quark W4A16": (_quark(None), "weight"),
    "Quark W4A4": (_quark({**_MX, "is_dynamic": True}), "weight"),
}
# -> one that says the same of its weights and nothing of activations.
TWINS = {name: f"{name.partition(' ')[0]} W4A16" if " " in name else name for name in QUANTIZATIONS}


def make(name, quantization, hidden=HIDDEN, inter=INTER):
    """A checkpoint directory, the same bytes for every quantization."""
    import torch
    from safetensors.torch import save_file

    if os.path.exists(name):
        return name
    config, packed = QUANTIZATIONS[quantization]
    draw = torch.Generator().manual_seed(1)
    tensors = {}

    def plain(key, *shape):
        tensors[key] = (torch.randn(shape, generator=draw) * 0.05).bfloat16()

    def expert(prefix, rows, columns):
        tensors[f"{prefix}.{packed}"] = torch.randint(0, 256, (rows, columns // 2), generator=draw, dtype=torch.uint8)
        tensors[f"{prefix}.weight_scale"] = torch.randint(118, 124, (rows, columns // 32), generator=draw, dtype=torch.uint8)

    plain("model.embed_tokens.weight", VOCABULARY, hidden)
    plain("lm_head.weight", VOCABULARY, hidden)
    plain("model.norm.weight", hidden)
    for layer in range(LAYERS):
        base = f"model.layers.{layer}"
        for norm, size in (("input_layernorm", hidden), ("post_attention_layernorm", hidden), ("self_attn.q_norm", HEAD_DIM), ("self_attn.k_norm", HEAD_DIM)):
            plain(f"{base}.{norm}.weight", size)
        for part, rows in (("q", HEADS), ("k", KV_HEADS), ("v", KV_HEADS)):
            plain(f"{base}.self_attn.{part}_proj.weight", rows * HEAD_DIM, hidden)
        plain(f"{base}.self_attn.o_proj.weight", hidden, HEADS * HEAD_DIM)
        plain(f"{base}.mlp.gate.weight", EXPERTS, hidden)
        for number in range(EXPERTS):
            for part, rows, columns in (("gate", inter, hidden), ("up", inter, hidden), ("down", hidden, inter)):
                expert(f"{base}.mlp.experts.{number}.{part}_proj", rows, columns)
    os.mkdir(name)
    save_file(tensors, f"{name}/model.safetensors", metadata={"format": "pt"})
    with open(f"{name}/config.json", "w") as file:
        json.dump({"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_size": hidden, "intermediate_size": inter,
                   "moe_intermediate_size": inter, "num_hidden_layers": LAYERS, "num_experts": EXPERTS, "num_experts_per_tok": 2, "norm_topk_prob": True,
                   "decoder_sparse_step": 1, "mlp_only_layers": [], "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS,
                   "head_dim": HEAD_DIM, "vocab_size": VOCABULARY, "hidden_act": "silu", "max_position_embeddings": 4096, "rms_norm_eps": 1e-6,
                   "tie_word_embeddings": False, "attention_bias": False, "torch_dtype": "bfloat16", "quantization_config": config}, file)
    return name
