"""Small checkpoints of the models in tests/engines/cells.json, for cell_row.py: their own sizes, few experts, two layers of experts, random bytes.

What a decision depends on stays as it is. What only the rest of the model needs is added from MODELS.
"""
import copy
import json
import os

VOCABULARY = 512
EXPERTS = ("num_local_experts", "n_routed_experts", "num_experts")
TOP_K = ("num_experts_per_tok", "num_experts_per_token", "experts_per_token")
DRAFTS = ("num_nextn_predict_layers", "mtp_num_hidden_layers")  # other models, which load by themselves
GATED, NUMBERED = ("gate_proj", "up_proj", "down_proj"), ("w1", "w3", "w2")
MLA = {"q_lora_rank": 64, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "moe_layer_freq": 1,
       "intermediate_size": 1024, "rms_norm_eps": 1e-6}
# model_type -> (prefix of a layer's experts, words of the three matrices, endings of codes and scales, what the rest of the model asks for).
MODELS = {
    "gpt_oss": ("model.layers.{}.mlp.experts", (), (), {"rms_norm_eps": 1e-5, "sliding_window": 128, "layer_types": ["sliding_attention", "full_attention"]}),
    "deepseek_v4": ("layers.{}.ffn.experts", NUMBERED, ("weight", "scale"), {}),
    "deepseek_v41": ("layers.{}.ffn.experts", NUMBERED, ("weight", "scale"),
                     {"hc_mult": 4, "hc_eps": 1e-6, "hc_sinkhorn_iters": 20, "rms_norm_eps": 1e-6, "index_topk": 512, "num_hash_layers": 0,
                      "kv_source_layer_ids": [1], "engram_config": None, "sliding_window": 128}),
    "kimi_k3": ("language_model.model.layers.{}.block_sparse_moe.experts", NUMBERED, ("weight_packed", "weight_scale"),
                {**MLA, "mla_use_nope": True, "latent_moe_use_norm": True, "linear_attn_config": {
                    "kda_layers": [1, 2, 3], "full_attn_layers": [4], "num_heads": 96, "head_dim": 128, "short_conv_kernel_size": 4,
                    "use_full_rank_gate": True, "gate_lower_bound": -5.0}}),
    "kimi_k25": ("language_model.model.layers.{}.mlp.experts", GATED, ("weight", "weight_scale"), MLA),
    "glm_moe_dsa": ("model.layers.{}.mlp.experts", GATED, ("weight", "weight_scale"), MLA),
    "deepseek_v3": ("model.layers.{}.mlp.experts", GATED, ("weight", "weight_scale"), MLA),
    "qwen3_5_moe": ("model.language_model.layers.{}.mlp.experts", GATED, ("weight", "weight_scale"), {}),
}
LAYERS = 2


def text_of(config):
    return config.get("text_config", config)


def experts_of(config):
    return next(text_of(config)[key] for key in EXPERTS if key in text_of(config))


def first_of(config):
    """The first layer that has experts."""
    return text_of(config).get("first_k_dense_replace", 0)


def reduced(config, experts):
    """The config with that many experts, and two layers of them behind one dense layer where there are such."""
    made = copy.deepcopy(config)
    text = text_of(made)
    for key, value in MODELS[config["model_type"]][3].items():
        text.setdefault(key, value)
    text.update({key: experts for key in EXPERTS if key in text})
    text.update({key: min(text[key], experts) for key in TOP_K if key in text})
    text.update({key: 0 for key in DRAFTS if key in text})
    if "first_k_dense_replace" in text:
        text["first_k_dense_replace"] = min(1, text["first_k_dense_replace"])
    text.update(num_hidden_layers=first_of(made) + LAYERS, vocab_size=VOCABULARY, max_position_embeddings=4096)
    return made


def has_mxfp4_shared_experts(config):
    """Whether Quark quantized the shared experts too, which the engine may put behind the routed ones."""
    quantization = config.get("quantization_config", {})
    return (quantization.get("quant_method") == "quark" and text_of(config).get("n_shared_experts", 0) > 0
            and not any("shared_experts" in pattern for pattern in quantization["exclude"]))


def make(name, config, shared=False):
    """The checkpoint directory of a reduced config, with its shared experts where the engine takes them for routed ones."""
    if os.path.exists(name):
        return os.path.abspath(name)
    from safetensors.torch import save_file

    write(name, config)
    for layer in range(first_of(config), first_of(config) + LAYERS):
        save_file(layer_of(config, layer, shared), f"{name}/model-{layer:05d}.safetensors", metadata={"format": "pt"})
    return os.path.abspath(name)


def write(name, config):
    os.makedirs(name, exist_ok=True)
    with open(f"{name}/config.json", "w") as file:
        json.dump(config, file)


def layer_of(config, layer, shared):
    """The tensors of one layer's experts, with the names and types of the published checkpoint."""
    import numpy
    import torch

    text, draw = text_of(config), numpy.random.default_rng(layer)
    hidden, inner = text.get("routed_expert_hidden_size") or text["hidden_size"], text.get("moe_intermediate_size") or text["intermediate_size"]
    place, words, endings, _ = MODELS[config["model_type"]]
    module, found = place.format(layer), {}

    def codes(*shape):
        return torch.from_numpy(draw.integers(0, 256, shape, dtype=numpy.uint8))

    def scales(*shape):
        return torch.from_numpy(draw.integers(118, 126, shape, dtype=numpy.uint8))

    def biases(*shape):
        return torch.from_numpy(draw.standard_normal(shape, dtype=numpy.float32)).bfloat16()

    quark = config["quantization_config"]["quant_method"] == "quark" if "quantization_config" in config else False
    if not words and not quark:
        experts = experts_of(config)
        for word, rows, columns in (("gate_up_proj", 2 * inner, hidden), ("down_proj", hidden, inner)):
            found[f"{module}.{word}_blocks"] = codes(experts, rows, columns // 32, 16)
            found[f"{module}.{word}_scales"] = scales(experts, rows, columns // 32)
            found[f"{module}.{word}_bias"] = biases(experts, rows)
        return found
    for base in [f"{module}.{expert}" for expert in range(experts_of(config))] + [module.replace(".experts", ".shared_experts")] * shared:
        if not words:
            for word, rows, columns in (("gate_up_proj", 2 * inner, hidden), ("down_proj", hidden, inner)):
                found |= {f"{base}.{word}.weight": codes(rows, columns // 2), f"{base}.{word}.weight_scale": scales(rows, columns // 32),
                          f"{base}.{word}.bias": biases(rows), f"{base}.{word}.input_scale": torch.tensor(0.5 + len(found) / 64)}
            continue
        names = ("weight", "weight_scale") if quark else endings
        for word, rows, columns in zip(words, (inner, inner, hidden), (hidden, hidden, inner)):
            made = codes(rows, columns // 2), scales(rows, columns // 32)
            if names[1] == "scale":
                made = made[0].view(torch.int8), made[1].view(torch.float8_e8m0fnu)
            found |= {f"{base}.{word}.{ending}": tensor for ending, tensor in zip(names, made)}
    return found
