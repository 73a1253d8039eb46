"""Checkpoints whose experts the engine serves by a method of another name than their quantization's, and what stops it at start-up. Sizes,
layers and machines are drawn. methods.py PROGRAM, in an empty directory."""
import os

import drawn_models
import layer_files
import models_layers
import published
from drawn_models import compressed_tensors, convert, draw, experts, explain, group, other_experts, qwen3, refused, run, save

ROCM = ("--arch", "gfx950", "--env", "VLLM_ROCM_USE_AITER=1")


def layers_of(folder):
    """The tensors of every layer file, by file and name."""
    out = {}
    for place, _, files in os.walk(folder):
        for name in sorted(files):
            if name.endswith(".safetensors"):
                for key, array in layer_files.read(os.path.join(place, name))[0].items():
                    out[os.path.relpath(place, folder), name, key] = (array.dtype, array.shape, array.tobytes())
    return out


def made(release, source, *flags):
    """The layer files that a release is given, and the layout."""
    done = run("convert", source, "-o", "out", "--force", "--compress", "none", "--revision", release, *flags)
    assert done.returncode == 0, done.stderr
    done = run("explain", source, "--revision", release, *flags)
    assert done.returncode == 0, done.stderr
    return layers_of("out"), done.stdout.split("layout ")[1].split(":")[0]


def dense_layers(layers):
    """A tensor of each of these layers, which have no experts."""
    return {f"model.layers.{layer}.mlp.gate_proj.weight": drawn_models.numbers("BF16", 8, 8) for layer in layers}


# ---- FP8 models with MXFP4 experts

def fp8(**more):
    return {"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3", "weight_block_size": [128, 128], **more}


def stored_as_mxfp4():
    """store_dtype: experts of any FP8 model, from 0.24.0 on, with the bytes of the same experts in an mxfp4 checkpoint."""
    count, hidden, inter, layers = draw(2, 4, 6), draw(256, 512), draw(256, 384, 512), 4
    first = draw(0, 1, 2)
    sizes = {"first_k_dense_replace": first} if draw(True, False) else {"moe_layer_freq": [0] * first + [1] * (layers - first)}
    tensors = dense_layers(range(first))
    for layer in range(first, layers):
        tensors.update(experts(f"model.layers.{layer}.mlp.experts", count, hidden, inter))
    stored = {**qwen3(fp8(store_dtype="mxfp4", mxfp4_block_size=32, ignored_layers=["model.layers.0.self_attn.o_proj"]), layers, count, hidden, inter),
              **sizes, "model_type": draw("mimo_v2", "qwen3_moe", "glm4_moe")}
    save("stored", stored, tensors)
    save("plain", {**stored, "quantization_config": {"quant_method": "mxfp4"}}, tensors)
    published.same_from_the_config("stored", "--arch", "sm90")
    for flags in (("--arch", "sm90"), ("--arch", "sm100"), ROCM, ("--arch", "sm120", "--tp-size", "2")):
        assert made("0.33.0", "stored", *flags) == made("0.33.0", "plain", *flags), flags
        assert explain("stored", *flags)["method"] == "Mxfp4MoEMethod"
    for release, code in (("0.24.0", 0), ("0.23.0", 4)):
        done = run("explain", "stored", "--arch", "sm90", "--revision", release)
        assert done.returncode == code, (release, done.returncode, done.stderr)
    out = draw(*range(first, layers))
    module = f"model.layers.{out}.mlp.experts"
    for name in [name for name in tensors if name.startswith(module)]:
        del tensors[name]
    tensors.update(other_experts(module, count, hidden, inter, "BF16"))
    for key in ("ignored_layers", "modules_to_not_convert"):
        stored["quantization_config"] = fp8(store_dtype="mxfp4", **{key: [draw(module, module + ".0.gate_proj"), "lm_head"]})
        (manifest,), said = convert(save("stored", stored, tensors), "--arch", draw("sm90", "sm120"))
        assert [layer["index"] for layer in manifest["layers"]] == [layer for layer in range(first, layers) if layer != out], (key, said)
    stored["quantization_config"] = fp8(store_dtype=draw("fp8", "nvfp4"))
    refused("is quantized as FP8", save("other", stored, tensors))


def ling():
    """Ling 3 is known by its class: published configs share their model_type with other models."""
    tensors = experts("model.layers.1.mlp.experts", 4, 256, 256, scale=".weight_scale_inv")
    config = {**qwen3(fp8(routed_experts_quant_method="mxfp4"), 2, 4, 256, 256), "first_k_dense_replace": 1, "model_type": "bailing_hybrid",
              "architectures": ["BailingMoeV3ForCausalLM"]}
    save("ling", config, tensors)
    assert explain("ling", "--arch", draw("sm90", "sm100", "sm120"))["method"] == "Mxfp4MoEMethod"
    nested = {"architectures": ["BailingMoeV3VLForConditionalGeneration"], "model_type": "bailing_moe_v3_vl",
              "quantization_config": config.pop("quantization_config"), "text_config": config}
    explain(save("vision", nested, tensors), "--arch", "sm90")
    config = {**config, "architectures": ["BailingMoeV2_5ForCausalLM"], "quantization_config": nested["quantization_config"]}
    refused("is quantized as FP8", save("ling", config, tensors))


# ---- words of configs

def layers_by_type():
    """mlp_layer_types says which layers have experts; scale_dtype may lack "torch."."""
    layers = int(drawn_models.RANDOM.integers(3, 7))
    dense = {int(layer) for layer in drawn_models.RANDOM.choice(layers, size=2, replace=False)}
    types = ["dense" if layer in dense else draw("sparse", "moe") for layer in range(layers)]
    weights = {**drawn_models.WEIGHTS, "scale_dtype": draw("uint8", "torch.uint8")}
    config = {**qwen3(compressed_tensors(group(["Linear"], weights)), layers, 4, 256, 256), "mlp_layer_types": [*types, "sparse"]}
    tensors = dense_layers(dense)
    for layer in set(range(layers)) - dense:
        tensors.update(experts(f"model.layers.{layer}.mlp.experts", 4, 256, 256, codes=".weight_packed"))
    save("typed", config, tensors)
    published.same_from_the_config("typed", "--arch", "sm90")


# ---- Kimi-K3 on gfx950

def situ_by_release():
    """0.27.0 takes AITER for SiTU without its selector, unrounded; the later releases' selector comes to the same bytes."""
    hidden, inter = draw(256, 512), draw(256, 512, 768)
    config = {"architectures": ["KimiK3ForConditionalGeneration"], "model_type": "kimi_k3", "text_config": {
        "model_type": "kimi_linear", "hidden_size": 64, "routed_expert_hidden_size": hidden, "moe_intermediate_size": inter, "num_experts": 4,
        "num_hidden_layers": 2, "first_k_dense_replace": 1, "hidden_act": "situ", "activation_situ_beta": 4.0, "activation_situ_linear_beta": 25.0,
        "num_experts_per_token": 2, "quantization_config": compressed_tensors(group(["re:.*block_sparse_moe.experts.*"]))}}
    save("k3", config, experts("language_model.model.layers.1.block_sparse_moe.experts", 4, hidden, inter, drawn_models.NUMBERED, codes=".weight_packed"))
    switches = {"0.27.0": "AITER_SITUV2_A8W4=1", "0.27.1": "AITER_SITUV2_A8W4=1", "0.28.0": "VLLM_ROCM_USE_AITER_MOE_SITUV2_A8W4=1",
                "0.31.0": "VLLM_ROCM_USE_AITER_MOE_SITUV2=a8w4", "0.33.0": "VLLM_ROCM_USE_AITER_MOE_SITUV2=a8w4"}
    results = [made(release, "k3", *ROCM) for release in switches]
    assert all(result == results[0] and result[1] == "aiter/bf16-situ" for result in results), [layout for _, layout in results]
    results = [made(release, "k3", *ROCM, "--env", switch) for release, switch in switches.items()]
    assert all(result == results[0] and result[1] != "aiter/bf16-situ" for result in results), [layout for _, layout in results]
    done = run("explain", "k3", *ROCM, "--revision", "0.33.0", "--env", switches["0.27.0"])
    assert "no rule of vllm-0.33.0 looks at AITER_SITUV2_A8W4" in done.stderr, done.stderr
    del config["text_config"]["activation_situ_linear_beta"]
    save("k3", config, experts("language_model.model.layers.1.block_sparse_moe.experts", 4, hidden, inter, drawn_models.NUMBERED, codes=".weight_packed"))
    assert explain("k3", *ROCM)["backend"] and run("explain", "k3", *ROCM, "--revision", "0.27.0").stdout.startswith("EMULATION"), "no linear beta"


# ---- start-up

def moe_ep():
    """FlashInfer's MoE-EP communicates by itself: beside another all-to-all backend the engine does not start."""
    models_layers.deepseek("v4", 1, models_layers.deepseek_config(False, 1))
    flags = ("--arch", draw("sm100", "sm103"), "--tp-size", "2", "--enable-expert-parallel")
    for release in ("0.32.0", "0.33.0"):
        ask = ("explain", "v4", *flags, "--revision", release, "--moe-backend", "flashinfer_moe_ep_mega_deep_gemm")
        for usual in ((), ("--all2all-backend", "allgather_reducescatter"), ("--all2all-backend", "naive")):
            assert run(*ask, *usual).returncode == 0, usual
        for other in ("deepep_high_throughput", "flashinfer_nvlink_one_sided", "mori_high_throughput", "deepep_v2"):
            done = run(*ask, "--all2all-backend", other)
            assert done.returncode == 4 and f"refuses --all2all-backend {other} beside it" in done.stderr, (other, done.stderr)
        done = run("explain", "v4", *flags, "--revision", release, "--all2all-backend", "passthrough")
        assert done.returncode == 4 and "passthrough belongs to --moe-backend flashinfer_moe_ep_*" in done.stderr, done.stderr


def main():
    print("seed", drawn_models.SEED)
    for check in (stored_as_mxfp4, ling, layers_by_type, situ_by_release, moe_ep):
        check()
        print("ok", check.__name__)


if __name__ == "__main__":
    main()
