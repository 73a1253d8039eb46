"""Layers that differ among themselves: draft stages, latent experts. Two kinds of quantization: published.py."""
from drawn_models import NUMBERED, RELEASE, check_all, compressed_tensors, convert, draw, experts, explain, group, refused, run, save


def deepseek(name, stages, config, count=8, draft=8, hidden=256, inter=256):
    tensors = {}
    for layer in range(2):
        tensors.update(experts(f"layers.{layer}.ffn.experts", count, hidden, inter, NUMBERED, scale=".scale", kinds=("I8", "F8_E8M0")))
    for stage in range(stages):
        tensors.update(experts(f"mtp.{stage}.ffn.experts", draft, hidden, inter, NUMBERED, scale=".scale", kinds=("I8", "F8_E8M0")))
    return save(name, config, tensors)


def deepseek_config(nested, stages, draft=None, count=8, **more):
    sizes = {"hidden_size": 256, "moe_intermediate_size": 256, "num_hidden_layers": 2, "n_routed_experts": count, "num_experts_per_tok": 2,
             "scoring_func": "sqrtsoftplus", "topk_method": "noaux_tc", "norm_topk_prob": True, "hidden_act": "silu",
             "num_nextn_predict_layers": stages, **({"dspark_n_routed_experts": draft} if draft else {}), **more}
    quantization = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [32, 32], "scale_fmt": "ue8m0"}
    if nested:
        return {"model_type": "deepseek_v41", "quantization_config": {**quantization, "expert_dtype": "fp4"},
                "text_config": {"model_type": "deepseek_v41_text", **sizes}}
    return {"model_type": "deepseek_v4", "expert_dtype": "fp4", "quantization_config": quantization, **sizes}


def draft_stages():
    """More stages than num_nextn_predict_layers says; stages with fewer experts, which expert parallelism divides apart."""
    deepseek("dspark", 3, deepseek_config(False, 1, dspark_block_size=5))
    (manifest,), _ = convert("dspark", "--arch", "sm100")
    assert [layer["index"] for layer in manifest["layers"]] == [0, 1, 2, 3, 4]
    draft = draw(2, 4, 6)
    for stages in (1, 3):
        deepseek("v41", 3, deepseek_config(True, stages, draft), draft=draft)
        manifests, _ = convert("v41", "--arch", "sm100", "--tp-size", "2", "--enable-expert-parallel")
        for rank, manifest in enumerate(manifests):
            recipes = manifest["recipes"]
            for layer in manifest["layers"]:
                held = draft // 2 if layer["index"] > 1 else 4
                assert recipes[layer["recipe"]]["experts"] == list(range(held * rank, held * (rank + 1))), layer
        assert run("unpack", "out", "-o", "back" + str(stages)).returncode == 0
    deepseek("v41", 3, deepseek_config(True, 3, 5), draft=4)
    refused("mtp.0.ffn.experts.4.w1.weight: missing", "v41", *RELEASE)
    deepseek("v41", 3, deepseek_config(True, 3, 2), draft=4)
    refused("beyond the 2 experts", "v41", *RELEASE)
    broken = deepseek_config(True, 3)
    broken["quantization_config"]["moe_quant_algo"] = "nvfp4"
    deepseek("v41", 3, broken)
    refused("moe_quant_algo: nvfp4: the experts are NVFP4", "v41", *RELEASE)


def latent_experts():
    """Kimi-K3's experts work on their own hidden size, in slices of at least 256 rows."""
    hidden, inter = draw(256, 512), 1024
    config = {"model_type": "kimi_k3", "text_config": {
        "model_type": "kimi_linear", "hidden_size": 64, "routed_expert_hidden_size": hidden, "moe_intermediate_size": inter, "num_experts": 4,
        "num_hidden_layers": 2, "first_k_dense_replace": 1, "hidden_act": "situ", "num_experts_per_token": 2,
        "quantization_config": compressed_tensors(group(["re:.*block_sparse_moe.experts.*"]))}}
    tensors = experts("language_model.model.layers.1.block_sparse_moe.experts", 4, hidden, inter, NUMBERED, codes=".weight_packed")
    save("k3", config, tensors)
    # flags, rows before the backend rounds them, and after
    for flags, padded in (((), 1024), (("--tp-size", 8), 256), (("--tp-size", 4), 256), (("--tp-size", 8, "--enable-expert-parallel"), None),
                          (("--tp-size", 4, "--enable-expert-parallel"), 1024), (("--tp-size", 8, "--dp-size", 2), 128),
                          (("--tp-size", 8, "--pad", "none"), 128)):
        if padded is None:
            continue
        answer = explain("k3", "--arch", "sm100", *flags)
        assert answer["sizes"]["padded"] == {"num_experts": 4 if "--enable-expert-parallel" not in flags else 1, "hidden_size": hidden,
                                             "intermediate_size": padded}, (flags, answer["sizes"])
    config["text_config"]["min_moe_intermediate_per_partition"] = 512
    save("k3", config, tensors)
    assert explain("k3", "--arch", "sm100", "--tp-size", "8")["sizes"]["padded"]["intermediate_size"] == 512
    convert("k3", "--arch", "sm100", "--tp-size", "8")
    done = run("fits", "out", *RELEASE)  # the manifest keeps the rule
    assert done.returncode == 0, done.stdout + done.stderr
    del config["text_config"]["min_moe_intermediate_per_partition"]
    config["text_config"]["routed_expert_hidden_size"] = hidden + 32
    save("k3", config, tensors)
    refused(f"routed_expert_hidden_size: {hidden + 32}, but .* makes it {hidden}", "k3", *RELEASE)


if __name__ == "__main__":
    check_all(draft_stages, latent_experts)
