"""Kimi-K3 and DeepSeek-V4.1 of testdata/frontier, drawn as its README says, through convert: every tensor of every case has the digest
that vLLM 0.33.0's own code gave. frontier.py PROGRAM TESTDATA, in an empty directory."""
import hashlib
import json
import os
import shutil
import subprocess
import sys

import layer_files
import numpy

PROGRAM, TESTDATA = sys.argv[1:]


def experts(module, count, hidden, inter, seed, codes, scale, kinds):
    """{name: (dtype, array)} of one layer's experts."""
    random, out = numpy.random.default_rng(seed), {}
    for expert in range(count):
        for word, rows, columns in (("w1", inter, hidden), ("w3", inter, hidden), ("w2", hidden, inter)):
            name = f"{module}.{expert}.{word}"
            out[name + codes] = kinds[0], random.integers(0, 256, (rows, columns // 2), dtype="u1")
            out[name + scale] = kinds[1], random.integers(101, 140, (rows, columns // 32), dtype="u1")
    return out


def kimi_k3(case):
    weights = {"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32, "symmetric": True, "dynamic": False,
               "scale_dtype": "torch.uint8"}
    quantization = {"quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized", "ignore": ["re:.*self_attn.*"],
                    "config_groups": {"group_0": {"targets": ["re:.*block_sparse_moe.experts.*"], "weights": weights, "input_activations": None}}}
    text = {"model_type": "kimi_linear", "hidden_size": 2 * case["H"], "routed_expert_hidden_size": case["H"], "intermediate_size": 96,
            "moe_intermediate_size": case["I"], "num_hidden_layers": 2, "first_k_dense_replace": 1, "num_experts": case["E"],
            "num_experts_per_token": 2, "num_shared_experts": 2, "hidden_act": "situ", "activation_situ_beta": 4.0,
            "activation_situ_linear_beta": 25.0, "moe_router_activation_func": "sigmoid", "moe_renormalize": True, "use_grouped_topk": True,
            "num_expert_group": 1, "topk_group": 1, "topk_method": "noaux_tc", "num_nextn_predict_layers": 0,
            "quantization_config": quantization}
    module = "language_model.model.layers.1.block_sparse_moe.experts"
    return ({"architectures": ["KimiK3ForConditionalGeneration"], "model_type": "kimi_k3", "text_config": text},
            experts(module, case["E"], case["H"], case["I"], case["seed"], ".weight_packed", ".weight_scale", ("U8", "U8")))


def deepseek_v41(case):
    """The model of the case's sizes: one layer of 12 experts, three draft stages of 4. Only the first stage is compared."""
    text = {"model_type": "deepseek_v41_text", "hidden_size": case["H"], "moe_intermediate_size": case["I"], "num_hidden_layers": 1,
            "n_routed_experts": 12, "n_shared_experts": 1, "num_experts_per_tok": 2, "scoring_func": "sqrtsoftplus", "topk_method": "noaux_tc",
            "norm_topk_prob": True, "routed_scaling_factor": 1.5, "swiglu_limit": 10.0, "hidden_act": "silu", "num_nextn_predict_layers": 3,
            "dspark_n_routed_experts": 4}
    config = {"architectures": ["DeepseekV41ForCausalLM"], "model_type": "deepseek_v41", "text_config": text,
              "quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [32, 32], "scale_fmt": "ue8m0",
                                      "expert_dtype": "fp4"}}
    main = case["seed"] - (0 if case["prefix"] == "layers." else 1000)
    tensors = {}
    for module, count, seed in (("layers.0", 12, main), ("mtp.0", 4, main + 1000), ("mtp.1", 4, 1), ("mtp.2", 4, 2)):
        tensors.update(experts(module + ".ffn.experts", count, case["H"], case["I"], seed, ".weight", ".scale", ("I8", "F8_E8M0")))
    return config, tensors


def check(case, config, tensors, layer):
    """How many tensors are equal."""
    shutil.rmtree("out", ignore_errors=True)
    os.makedirs("model", exist_ok=True)
    with open("model/config.json", "w") as file:
        json.dump(config, file)
    layer_files.write("model/model.safetensors", tensors)
    command = [PROGRAM, "convert", "model", "-o", "out", "--compress", "none", "--quiet", "--revision", "0.33.0", "--arch", case["arch"],
               "--moe-backend", case["moe_backend"], "--tp-size", str(case["tp"]), "--rank", str(case["rank"])]
    if case["expert_parallel"]:
        command.append("--enable-expert-parallel")
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, f"{case['id']}: {done.stdout}"
    ranks = case["tp"]
    folder = f"out/rank-{case['rank']:02}-of-{ranks:02}" if ranks > 1 else "out"
    with open(folder + "/mxfp4_repack.json") as file:
        manifest = json.load(file)
    assert manifest["target"]["backend"] == case["backend"], f"{case['id']}: {manifest['target']['backend']}"
    (entry,) = (entry for entry in manifest["layers"] if entry["prefix"].startswith(layer))
    found, _ = layer_files.read(f"{folder}/{entry['file']}")
    for name, want in case["tensors"].items():
        (array,) = (value for key, value in found.items() if key.endswith("." + name))
        assert list(array.shape) == want["shape"], f"{case['id']}: {name}: {array.shape}"
        digest = hashlib.sha256(numpy.ascontiguousarray(array).tobytes()).hexdigest()
        assert digest == want["sha256"], f"{case['id']}: {name}: other bytes"
    return len(case["tensors"])


def main():
    compared = 0
    for file, make, layer in (("kimi_k3", kimi_k3, lambda case: "language_model."), ("deepseek_v41", deepseek_v41, lambda case: case["prefix"])):
        with open(f"{TESTDATA}/frontier/{file}.json") as golden:
            for case in json.load(golden)["cases"]:
                compared += check(case, *make(case), layer(case))
    assert compared == 88, f"{compared} tensors"
    print(compared, "tensors equal")


main()
