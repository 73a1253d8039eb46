"""Configs as families of models publish them: the answer before the download is the one with the weights. Inkling's stacked experts give the
bytes of the same experts stored one by one. Sizes, layers and names are drawn. published.py PROGRAM, in an empty directory."""
import os
import shutil

import drawn_models
import numpy
from drawn_models import compressed_tensors, draw, experts, explain, group, layer_files, numbers, other_experts, quark, qwen3, refused, run, save

ROCM = ("--env", "VLLM_ROCM_USE_AITER=1")


def same_from_the_config(name, *flags):
    """The whole answer, blob sizes included, from the config alone and with the weights."""
    os.makedirs("alone", exist_ok=True)
    shutil.copy(name + "/config.json", "alone/config.json")
    whole, answer = explain(name, *flags), explain("alone", *flags)
    answer.pop("config_only")
    for other in ("next", "serve", "checkpoint"):
        whole.pop(other, None), answer.pop(other, None)
    assert answer == whole, (name, [key for key in whole if whole[key] != answer.get(key)])
    return whole


# ---- exclusions

def excluded_layers():
    """Layers that the quantization leaves out, in each method's own words: the tensors say which they are."""
    layers, out = 4, int(drawn_models.RANDOM.integers(0, 4))
    kept = [layer for layer in range(layers) if layer != out]
    module = f"model.layers.{out}.mlp.experts"
    leaves = [f"{module}.{e}.{p}" for e in range(4) for p in drawn_models.GATED]
    cases = []
    for exclude in ([module], leaves, ["re:" + module.replace(".", r"\.")], ["re:.*layers." + str(out) + ".mlp.*"]):
        cases.append((dict(quark(), exclude=["lm_head", *exclude]), ".weight", ("--arch", draw("gfx950", "gfx942"), *ROCM)))
    for ignore in (leaves, [f"re:.*layers.{out}.mlp.experts.*"]):
        cases.append((dict(compressed_tensors(group(["Linear"])), ignore=["lm_head", *ignore]), ".weight_packed", ("--arch", draw("sm90", "sm100"))))
    rounds = {"quant_method": "auto-round", "bits": 4, "group_size": 32, "data_type": "mx_fp", "packing_format": "auto_round:llm_compressor"}
    cases.append((dict(rounds, extra_config={module: {"bits": 16, "data_type": "float"}}), ".weight_packed", ("--arch", "sm90")))
    cases.append((dict(rounds, block_name_to_quantize=[f"model.layers.{layer}" for layer in kept]), ".weight_packed", ("--arch", "sm100")))
    named = "re:model\\.layers\\.(" + "|".join(map(str, kept)) + ")\\.mlp\\.experts\\.\\d{1,3}\\..*"
    cases.append((compressed_tensors(group([named])), ".weight_packed", ("--arch", "sm100")))
    fp8 = {"weight": {"dtype": "fp8_e4m3", "qscheme": "per_tensor"}, "input_tensors": None}
    for name in (leaves[0], module, f"*.{out}.mlp.experts"):
        cases.append((dict(quark(), layer_quant_config={name: fp8}), ".weight", ("--arch", "gfx950", *ROCM)))
    for quantization, codes, flags in cases:
        tensors = other_experts(module, 4, 256, 256, "BF16")
        for layer in kept:
            tensors.update(experts(f"model.layers.{layer}.mlp.experts", 4, 256, 256, codes=codes))
        save("part", qwen3(quantization, layers, 4, 256, 256), tensors)
        assert f"layer {out} has experts that are not MXFP4" in " ".join(explain("part", *flags)["warnings"]), quantization


def fused_shared_experts():
    """Shared experts that Quark quantized too are put behind the routed ones, where the user asks AITER for it: known from the config as well."""
    flags = ("--arch", "gfx950", *ROCM, "--env", "VLLM_ROCM_USE_AITER_FUSION_SHARED_EXPERTS=1", *drawn_models.RELEASE)
    for exclude, code in ((["lm_head"], 4), (["re:.*shared_experts.*"], 0), (["model.layers.0.mlp.shared_experts.gate_proj"], 0)):
        config = {**qwen3(dict(quark(), exclude=exclude), 1, 4, 256, 256), "architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3",
                  "n_shared_experts": 1}
        tensors = experts("model.layers.0.mlp.experts", 4, 256, 256)
        shared = "model.layers.0.mlp.shared_experts.gate_proj.weight"
        tensors[shared] = numbers("U8", 256, 128) if code else numbers("BF16", 256, 256)
        save("shared", config, tensors)
        os.makedirs("alone", exist_ok=True)
        shutil.copy("shared/config.json", "alone/config.json")
        for source in ("shared", "alone"):
            done = run("explain", source, *flags)
            assert done.returncode == code, (source, exclude, done.stdout, done.stderr)
            assert code == 0 or "1 shared expert behind the 4 routed ones" in done.stdout + done.stderr, done.stdout


# ---- sizes and layers under other names

def family(name, words, block, layers, drafts=(), draft_count=4):
    """A Quark checkpoint of four experts in `layers`, whose config says so in `words`."""
    sizes = qwen3(quark(), 1, 4, 256, 256)
    for key in ("num_experts", "moe_intermediate_size", "num_hidden_layers", "num_experts_per_tok", "architectures"):
        del sizes[key]
    tensors = {}
    for layer in layers:
        tensors.update(experts(f"model.layers.{layer}.{block}.experts", 4, 256, 256))
    for layer in drafts:
        tensors.update(experts(f"{layer}.{block}.experts", draft_count, 256, 256))
    for layer in range(words.get("num_hidden_layers") or words["num_layers"]):
        tensors[f"model.layers.{layer}.input_layernorm.weight"] = numbers("BF16", 256)
    return save(name, {**sizes, **words}, tensors)


def other_names():
    """The keys that families use for the number of experts, their size, the layers that have them, and drafts."""
    count = int(drawn_models.RANDOM.integers(4, 8))
    flags = ("--arch", "gfx950", *ROCM)
    family("ernie", {"model_type": "ernie4_5_moe", "moe_num_experts": 4, "moe_k": 2, "moe_intermediate_size": 256, "intermediate_size": 1024,
                     "num_hidden_layers": count, "moe_layer_start_index": 1, "moe_layer_interval": 1}, "mlp", range(1, count))
    family("step", {"model_type": "step3p5", "moe_num_experts": 4, "moe_top_k": 2, "moe_intermediate_size": 256, "intermediate_size": 512,
                    "num_hidden_layers": count, "moe_layers_enum": "1,2,3"}, "mlp", (1, 2, 3))
    family("scout", {"model_type": "llama4_text", "num_local_experts": 4, "num_experts_per_tok": 1, "intermediate_size": 256,
                     "intermediate_size_mlp": 512, "num_hidden_layers": count, "interleave_moe_layer_step": 2}, "feed_forward", range(1, count, 2))
    family("jamba", {"model_type": "jamba", "num_experts": 4, "num_experts_per_tok": 2, "intermediate_size": 256, "num_hidden_layers": count,
                     "expert_layer_period": 2, "expert_layer_offset": 1}, "feed_forward", range(1, count, 2))
    family("longcat", {"model_type": "longcat_flash", "n_routed_experts": 4, "moe_topk": 2, "expert_ffn_hidden_size": 256, "ffn_hidden_size": 512,
                       "num_layers": count}, "mlp", range(count))
    family("listed", {"model_type": "hunyuan_v1_moe", "num_experts": 4, "moe_topk": [2] * count, "moe_intermediate_size": [256] * count,
                      "intermediate_size": 512, "num_hidden_layers": count}, "mlp", range(count))
    family("flags", {"model_type": "minimax_m3", "num_local_experts": 4, "num_experts_per_tok": 2, "intermediate_size": 256,
                     "num_hidden_layers": count, "moe_layer_freq": [0] + [1] * (count - 1)}, "mlp", range(1, count))
    for name in ("ernie", "step", "scout", "jamba", "longcat", "listed", "flags"):
        answer = same_from_the_config(name, *flags)
        assert answer["sizes"]["rank"] == {"num_experts": 4, "hidden_size": 256, "intermediate_size": 256}, (name, answer["sizes"])
    # Sizes of two kinds of experts are not the one that the next key states.
    sizes = {"model_type": "ernie4_5_moe_vl", "moe_num_experts": 4, "moe_intermediate_size": [256, 128], "intermediate_size": 1024,
             "num_hidden_layers": 2}
    family("two", sizes, "mlp", (0, 1))
    explain("two", *flags)
    shutil.copy("two/config.json", "alone/config.json")
    refused("moe_intermediate_size: a list of several sizes; only the weights say which are whose", "alone")


def inkling_config(layers, count, hidden, inter, kept):
    module = f"model.llm.layers.{kept}.mlp.experts."
    return {"architectures": ["InklingForConditionalGeneration"], "model_type": "inkling_mm_model",
            "quantization_config": dict(quark(), exclude=["re:.*attn.*", module + "w13_weight", module + "w2_weight"]),
            "text_config": {"model_type": "inkling_model", "hidden_size": hidden, "intermediate_size": inter, "dense_intermediate_size": 512,
                            "num_hidden_layers": layers, "dense_mlp_idx": 1, "n_routed_experts": count, "n_shared_experts": 2,
                            "num_experts_per_tok": 2, "hidden_act": "silu"}}


def alternating(halves):
    """Rows of gate and up, stacked, alternating: [E, 2I, ...] of a pair of [E, I, ...]."""
    return numpy.stack(halves, axis=2).reshape(halves[0].shape[0], -1, halves[0].shape[-1])


def inkling(count, hidden, inter, flat):
    """An Inkling checkpoint, and the same experts under names of their own in a Qwen3 one. Layer 0 is dense, layer 1 not quantized."""
    plain, stacked = {}, {"model.llm.layers.0.mlp.w13_dn.weight": numbers("BF16", 1024, hidden)}
    for layer in (2, 3):
        module, own = f"model.layers.{layer}.mlp.experts", f"model.llm.layers.{layer}.mlp.experts."
        tensors = experts(module, count, hidden, inter)
        plain.update(tensors)
        for suffix, field in ((".weight", "_weight"), (".weight_scale", "_weight_scale")):
            gate, up, down = (numpy.stack([tensors[f"{module}.{e}.{word}{suffix}"][1] for e in range(count)]) for word in drawn_models.GATED)
            for name, array in (("w13", alternating((gate, up))), ("w2", down)):
                shaped = array.reshape(-1, array.shape[-1]) if flat and field == "_weight_scale" else array
                stacked[own + name + field] = ("U8", numpy.ascontiguousarray(shaped))
        stacked[own + "w13_weight.original_shape"] = numbers("F32", 3)
    for name, shape in (("w13_weight", (count, 2 * inter, hidden)), ("w2_weight", (count, hidden, inter))):
        stacked["model.llm.layers.1.mlp.experts." + name] = numbers("BF16", *shape)
    save("inkling", inkling_config(4, count, hidden, inter, 1), stacked)
    save("apart", {**qwen3(quark(), 4, count, hidden, inter), "first_k_dense_replace": 2}, plain)


def layers_of(folder):
    """The tensors of every layer file, by file and by name without the model's prefix."""
    out = {}
    for place, _, files in os.walk(folder):
        for name in files:
            if not name.endswith(".safetensors"):
                continue
            for key, array in layer_files.read(os.path.join(place, name))[0].items():
                out[os.path.relpath(place, folder), name, key.rsplit(".", 1)[1]] = (array.dtype, array.shape, array.tobytes())
    return out


def stacked_experts():
    """The bytes are those of the same experts one by one, on each rank; the blob gives the checkpoint back."""
    count, hidden, inter = draw(2, 4, 6), draw(256, 512), draw(512, 1024)
    for flat, flags in ((True, ("--arch", "gfx950", *ROCM)), (False, ("--arch", "gfx942", *ROCM)), (draw(True, False), ("--arch", "gfx950", *ROCM)),
                        (False, ("--arch", "sm120"))):
        inkling(count, hidden, inter, flat)
        split = draw((), ("--tp-size", "2"), ("--tp-size", "2", "--enable-expert-parallel"))
        drawn_models.convert("apart", *flags, *split)
        expected = layers_of("out")
        manifests, said = drawn_models.convert("inkling", *flags, *split)
        assert layers_of("out") == expected and len(expected) >= 8, (flat, flags, split)
        assert [layer["index"] for layer in manifests[0]["layers"]] == [2, 3]
        assert "layer 1 has experts that are not MXFP4; they stay" in said, said
        assert "does not know" not in said, said
        shutil.rmtree("back", ignore_errors=True)
        done = run("unpack", "out", "-o", "back", "--as-published")
        assert done.returncode == 0, done.stderr
        with_all, given_back = layer_files.read("inkling/model.safetensors")[0], layer_files.read("back/model.safetensors")[0]
        assert len(given_back) == 8, list(given_back)
        for name, array in given_back.items():
            assert array.shape == with_all[name].shape and array.tobytes() == with_all[name].tobytes(), name
    inkling(count, hidden, inter, True)
    done = run("explain", "inkling", "--arch", "sm120", *drawn_models.RELEASE)
    assert done.returncode == 4 and "the engine loads them on ROCm only" in done.stderr, done.stderr
    inkling(4, hidden, inter, True)
    done = run("explain", "inkling", "--arch", "gfx950", *ROCM, *drawn_models.RELEASE, "--tp-size", "3", "--enable-expert-parallel")
    assert done.returncode == 4 and "experts of zeros" in done.stderr, done.stderr


def main():
    print("seed", drawn_models.SEED)
    for check in (excluded_layers, fused_shared_experts, other_names, stacked_experts):
        check()
        print("ok", check.__name__)


if __name__ == "__main__":
    main()
