"""Small checkpoints with the configs and containers that people have. Each function below makes some and checks the program's answers; sizes
and names are drawn. models.py PROGRAM, in an empty directory."""
import json
import os
import re
import shutil
import subprocess
import sys

import layer_files
import numpy

PROGRAM = sys.argv[1]
SEED = int(os.environ.get("MXFP4_SEED", "1"))
RANDOM = numpy.random.default_rng(SEED)
RELEASE = ("--revision", "0.33.0")
GATED, NUMBERED = ("gate_proj", "up_proj", "down_proj"), ("w1", "w3", "w2")
WEIGHTS = {"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32, "symmetric": True, "dynamic": False}


def draw(*choices):
    return choices[RANDOM.integers(len(choices))]


def numbers(dtype, *shape):
    width = {"BF16": "u2", "F32": "f4", "I32": "i4"}.get(dtype, "u1")
    return dtype, RANDOM.integers(101, 140, shape).astype(width)


def experts(module, count, hidden, inter, words=GATED, codes=".weight", scale=".weight_scale", kinds=("U8", "U8")):
    out = {}
    for expert in range(count):
        for word, rows, columns in zip(words, (inter, inter, hidden), (hidden, hidden, inter)):
            out[f"{module}.{expert}.{word}{codes}"] = numbers(kinds[0], rows, columns // 2)
            out[f"{module}.{expert}.{word}{scale}"] = numbers(kinds[1], rows, columns // 32)
    return out


def other_experts(module, count, hidden, inter, dtype):
    out = {}
    for expert in range(count):
        for word, rows, columns in zip(GATED, (inter, inter, hidden), (hidden, hidden, inter)):
            out[f"{module}.{expert}.{word}.weight"] = numbers(dtype, rows, columns)
            if dtype == "F8_E4M3":
                out[f"{module}.{expert}.{word}.weight_scale"] = numbers("F32", rows, 1)
    return out


def group(targets, weights=WEIGHTS, inputs=None, form="mxfp4-pack-quantized"):
    return {"format": form, "targets": targets, "weights": weights, "input_activations": inputs, "output_activations": None}


def compressed_tensors(*groups, form="mxfp4-pack-quantized"):
    return {"quant_method": "compressed-tensors", "format": form, "ignore": ["lm_head"],
            "config_groups": {f"group_{i}": g for i, g in enumerate(groups)}}


def quark(**weight):
    fp4 = {"dtype": "fp4", "qscheme": "per_group", "group_size": 32, "scale_format": "e8m0", "is_dynamic": False}
    return {"quant_method": "quark", "export": {"kv_cache_group": []}, "layer_quant_config": {}, "exclude": ["lm_head"],
            "global_quant_config": {"weight": {**fp4, **weight}, "input_tensors": {**fp4, "is_dynamic": True}, "output_tensors": None, "bias": None}}


def qwen3(quantization, layers, count, hidden, inter):
    return {"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_size": hidden, "moe_intermediate_size": inter,
            "num_experts": count, "num_experts_per_tok": 2, "num_hidden_layers": layers, "norm_topk_prob": True, "hidden_act": "silu",
            "quantization_config": quantization}


def save(name, config, tensors, file="model.safetensors"):
    shutil.rmtree(name, ignore_errors=True)
    os.mkdir(name)
    if config is not None:
        with open(name + "/config.json", "w") as out:
            out.write(config if isinstance(config, str) else json.dumps(config))
    layer_files.write(f"{name}/{file}", tensors)
    return name


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def explain(*arguments):
    """The answer; asserts that there is one."""
    done = run("explain", *arguments, *RELEASE, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def convert(source, *arguments):
    """The manifests by rank, and what was said; asserts success, and that verify agrees with the input."""
    shutil.rmtree("out", ignore_errors=True)
    done = run("convert", source, "-o", "out", "--compress", "none", *arguments, *RELEASE)
    assert done.returncode == 0, done.stderr
    checked = run("verify", "out", "--against", source)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    manifests = []
    for folder, _, files in sorted(os.walk("out")):
        if "mxfp4_repack.json" in files:
            with open(folder + "/mxfp4_repack.json") as file:
                manifests.append(json.load(file))
    convert_again(manifests, arguments)
    return manifests, done.stderr


def convert_again(manifests, arguments):
    """The blob as the input gives the same layers, and manifests that differ in their warnings at most."""
    shutil.rmtree("again", ignore_errors=True)
    words = list(map(str, arguments))
    if "--include-rest" in words:
        return
    done = run("convert", "out", "-o", "again", "--compress", "none", *words, *RELEASE)
    if done.returncode == 4 and ("not have all of its checkpoint" in done.stderr or "biases" in done.stderr):
        return
    assert done.returncode == 0, done.stderr
    for folder, _, files in sorted(os.walk("out")):
        for name in files:
            with open(f"{folder}/{name}", "rb") as one, open(f"again{folder[3:]}/{name}", "rb") as other:
                first, second = one.read(), other.read()
            if name == "mxfp4_repack.json":
                first, second = ({key: value for key, value in json.loads(text).items() if key not in ("warnings", "manifest_xxh3_128")}
                                 for text in (first, second))
            assert first == second, f"{folder}/{name} differs when it is made from the blob"


def refused(words, source, *arguments, code=3, without=None):
    done = run("explain", source, "--arch", "sm90", *arguments)
    assert done.returncode == code, f"exit {done.returncode}: {done.stderr}"
    assert done.stderr.count("mxfp4-repack: error: ") == 1, done.stderr
    assert re.search(words, done.stderr), f"no /{words}/ in {done.stderr}"
    assert not without or without not in done.stderr, done.stderr


# ---- layers

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
            assert manifest["rank"]["experts"] == list(range(4 * rank, 4 * rank + 4))
            for layer in manifest["layers"]:
                own = list(range(draft // 2 * rank, draft // 2 * (rank + 1))) if layer["index"] > 1 else None
                assert layer.get("experts") == own, layer
                assert layer["sizes"]["num_experts"] == (draft // 2 if own else 4)
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


def layers_of_two_kinds():
    """Layers that are not MXFP4 stay, and one warning names them."""
    eight = {"num_bits": 8, "type": "float", "strategy": "channel", "symmetric": True}
    first = draw(0, 1)
    for dtype, targets in (("F8_E4M3", [f"re:.*layers.{first}.mlp.experts.*"]), ("BF16", None)):
        groups = [group(["Linear"])] if targets is None else [group(targets, eight, form="float-quantized"), group(["Linear"])]
        config = qwen3(compressed_tensors(*groups, form="mixed-precision"), 3, 4, 256, 128)
        tensors = other_experts(f"model.layers.{first}.mlp.experts", 4, 256, 128, dtype)
        for layer in {0, 1, 2} - {first}:
            tensors.update(experts(f"model.layers.{layer}.mlp.experts", 4, 256, 128, codes=".weight_packed"))
        (manifest,), said = convert(save("mixed", config, tensors), "--arch", "sm90")
        assert {layer["index"] for layer in manifest["layers"]} == {0, 1, 2} - {first}
        assert f"layer {first} has experts that are not MXFP4; they stay" in said, said
    # None is left: the first refusal is the answer.
    config["quantization_config"] = compressed_tensors(group(["re:.*experts.*"], eight, form="float-quantized"), group(["re:.*self_attn.*"]),
                                                       form="mixed-precision")
    refused("group_0.weights.num_bits: 8, expected 4", save("mixed", config, tensors), *RELEASE)


# ---- configs and containers

def gpt_oss(name, layers=2):
    layer_files.make_gpt_oss(name, layers, 4, 64, 64, SEED)
    return name


def constants_of_python():
    """Infinity and NaN, which Python writes, do not matter where they stand, and stay what they are."""
    gpt_oss("python")
    with open("python/config.json") as file:
        text = file.read()
    extra = ', "time_step_limit": [0.0, Infinity, -Infinity, NaN], "said": "Infinity, NaN \\" NaN"'
    with open("python/config.json", "w") as file:
        file.write(text[:-1] + extra + "}")
    convert("python", "--arch", "sm90", "--include-rest")
    with open("out/config.json") as file:
        kept = file.read()
    assert json.loads(kept, parse_constant=str)["time_step_limit"] == [0.0, "Infinity", "-Infinity", "NaN"], kept
    assert json.loads(kept)["said"] == 'Infinity, NaN " NaN'
    with open("python/config.json", "w") as file:
        file.write(text.replace('"hidden_size": 64', '"hidden_size": NaN'))
    refused("hidden_size: .*NaN", "python")
    with open("python/config.json", "w") as file:
        file.write(text[:-1] + ', "x": Infinit}')
    refused("not JSON", "python")


def index_with_others():
    """Tensors that only the index lists are a warning, but for experts."""
    gpt_oss("ghost")
    name = "ghost/model.safetensors.index.json"
    tensors, _ = layer_files.read("ghost/model.safetensors")
    index = {"weight_map": dict.fromkeys([*tensors, "lm_head.weight", "mtp.fc.weight"], "model.safetensors")}
    with open(name, "w") as file:
        json.dump(index, file)
    _, said = convert("ghost", "--arch", "sm90")
    assert "lm_head.weight: the index says that it is here, but it is not; 1 more such" in said, said
    index["weight_map"]["model.layers.7.mlp.experts.down_proj_blocks"] = "model.safetensors"
    with open(name, "w") as file:
        json.dump(index, file)
    refused("layers.7.mlp.experts.down_proj_blocks: the index says that it is here, but it is not", "ghost")
    for number in range(2, 5):
        index["weight_map"][f"x{number}"] = f"model-{number}.safetensors"
    with open(name, "w") as file:
        json.dump(index, file)
    refused("3 of 4 files are not there, first of all \"model-2.safetensors\"", "ghost")


def hdf5_with_records():
    """Strings and records beside the tensors of an HDF5 file are passed over; an expert's must be numbers."""
    try:
        import h5py
    except ImportError:
        return
    gpt_oss("plain")
    tensors, _ = layer_files.read("plain/model.safetensors")
    for bad in (False, True):
        with h5py.File("model.h5", "w") as file, open("plain/config.json") as config:
            file.attrs["config_json"] = config.read()
            for name, array in tensors.items():
                file[name] = array
            file["tokenizer/vocabulary"] = numpy.array(["a", "b"], dtype=h5py.string_dtype())
            file["history"] = numpy.zeros(3, dtype=[("step", "i4"), ("loss", "f4")])
            if bad:
                del file["model.layers.1.mlp.experts.down_proj_scales"]
                file["model.layers.1.mlp.experts.down_proj_scales"] = numpy.array(["a"], dtype=h5py.string_dtype())
        if bad:
            refused("down_proj_scales: element type: string", "model.h5")
        else:
            convert("model.h5", "--arch", "sm90")


def other_words_of_configs():
    """Ling's MXFP4 experts in an FP8 model, Quark's specification as a list of one, FP8 experts of a module rule."""
    ling = qwen3({"quant_method": "fp8", "weight_block_size": [128, 128], "routed_experts_quant_method": "mxfp4"}, 1, 4, 256, 128)
    ling["model_type"] = "bailing_moe_v3"
    tensors = experts("model.layers.0.mlp.experts", 4, 256, 128, scale=".weight_scale_inv")
    (manifest,), _ = convert(save("ling", ling, tensors), "--arch", "sm100")
    assert explain("ling", "--arch", "sm100")["method"] == "Mxfp4MoEMethod"
    ling["quantization_config"]["routed_experts_quant_method"] = "nvfp4"
    refused("routed_experts_quant_method: nvfp4, expected mxfp4", save("ling", ling, tensors))
    ling["quantization_config"]["routed_experts_quant_method"] = "mxfp4"
    ling["model_type"] = "qwen3_moe"
    refused("a model of type qwen3_moe is quantized as FP8", save("ling", ling, tensors))
    listed = quark()
    listed["global_quant_config"]["weight"] = [listed["global_quant_config"]["weight"]]
    plain = experts("model.layers.0.mlp.experts", 4, 256, 128)
    convert(save("listed", qwen3(listed, 1, 4, 256, 128), plain), "--arch", "gfx950")
    # Executed: 0.31.0 and 0.33.0 read it; older releases ask the list for its dtype.
    for group in ("weight", "input_tensors"):
        config = quark()
        whole = config["global_quant_config"]
        config["layer_quant_config"] = {"*experts*": {**whole, group: [whole[group]]} if whole[group] else {**whole, "weight": [whole["weight"]]}}
        save("listed", qwen3(config, 1, 4, 256, 128), plain)
        for release, code in (("0.33.0", 0), ("0.31.0", 0), ("0.30.0", 4), ("0.21.0", 4)):
            done = run("explain", "listed", "--arch", "gfx950", "--revision", release)
            assert done.returncode == code, (release, group, done.stderr)
            assert code == 0 or "does not read a Quark specification that is a list of one" in done.stderr, done.stderr
    listed["global_quant_config"]["weight"] *= 2
    refused("global_quant_config.weight: .* expected an object", save("listed", qwen3(listed, 1, 4, 256, 128), plain))


def only_a_config():
    """The answer before the download is the answer after it."""
    k3 = {"num_hidden_layers": 3, "first_k_dense_replace": 1}
    for name, flags in (("dspark", ("--arch", "sm100")), ("mixed2", ("--arch", "gfx950")), ("plain", ("--arch", "sm90"))):
        if name == "mixed2":
            tensors = {}
            for layer in (1, 2):
                tensors.update(experts(f"model.layers.{layer}.mlp.experts", 6, 256, 256))
            save(name, {**qwen3(quark(), 3, 6, 256, 256), **k3}, tensors)
        os.makedirs("alone", exist_ok=True)
        shutil.copy(name + "/config.json", "alone/config.json")
        shutil.copy(name + "/config.json", "other-name.json")
        flags += ("--tp-size", "2", "--all")
        whole = explain(name, *flags)
        for words in (("alone",), ("alone/config.json",), ("other-name.json",), ("--model-config", "other-name.json")):
            answer = explain(*words, *flags)
            assert "the weights could show" in answer.pop("config_only")
            assert answer.pop("next").startswith("mxfp4-repack convert CHECKPOINT -o OUT"), words
            for other in ("next", "checkpoint"):
                whole.pop(other, None), answer.pop(other, None)
            assert answer == whole, (name, words)
        assert "config_only" not in explain(name + "/config.json", *flags)  # the weights beside it
    broken = {**qwen3(quark(), 3, 6, 256, 256)}
    del broken["num_hidden_layers"]
    with open("alone/config.json", "w") as file:
        json.dump(broken, file)
    refused("num_hidden_layers: missing; without weights it is not known", "alone")
    done = run("convert", "alone", "-o", "nothing", "--arch", "sm90")
    assert done.returncode == 3 and "no *.safetensors beside it" in done.stderr, done.stderr


# ---- words

def no_checkpoints():
    config = layer_files.gpt_oss_config(2, 4, 64, 64)
    mlx = {"group_size": 32, "bits": 4, "mode": "mxfp4"}
    refused("MLX's format", save("mlx", {**config, "quantization": mlx, "quantization_config": mlx},
                                 {"model.layers.0.mlp.experts.up_proj.weight": numbers("I32", 4, 64, 8)}))
    lora = {"base_model.model.model.layers.0.mlp.experts.gate_up_proj.lora_A.weight": numbers("BF16", 8, 64)}
    refused("a LoRA adapter, not a model", save("adapter", None, lora, "adapter_model.safetensors"))
    state = {"model.layers.0.mlp.experts.w13_weight": numbers("I32", 4, 16, 64)}
    save("state", config, state, "model-rank-0-part-0.safetensors")
    layer_files.write("state/model-rank-1-part-0.safetensors", state)
    refused(r"sharded_state.*already processed", "state")
    module, linear = "model.layers.0.mlp.experts", compressed_tensors(group(["Linear"]))
    fused = {f"{module}.{name}": numbers("U8", 4, *shape) for name, shape in
             (("gate_up_proj.weight_packed", (256, 128)), ("gate_up_proj.weight_scale", (256, 8)), ("down_proj.weight_packed", (256, 64)),
              ("down_proj.weight_scale", (256, 4)))}
    refused("all experts of a layer fused in one tensor", save("fused", qwen3(linear, 1, 4, 256, 128), fused))
    for words in (GATED, NUMBERED):
        ungated = {name: tensor for name, tensor in experts(module, 4, 256, 128, words, codes=".weight_packed").items() if words[0] not in name}
        refused("its experts are ungated, with two projections", save("ungated", qwen3(linear, 1, 4, 256, 128), ungated), without="missing")
    gpt_oss("merged", 1)
    tensors = {name: ("BF16" if array.dtype == "u2" else "U8", array) for name, array in layer_files.read("merged/model.safetensors")[0].items()}
    prefix = "model.layers.1.mlp.experts."
    for name, shape in (("gate_up_proj", (4, 64, 128)), ("gate_up_proj_bias", (4, 128)), ("down_proj", (4, 64, 64)), ("down_proj_bias", (4, 64))):
        tensors[prefix + name] = numbers("BF16", *shape)
    refused("the experts of layer 1 are not quantized, other layers' experts are", save("merged", config, tensors))
    save("pointer", "version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 3\n", tensors)
    refused("config.json: a Git LFS pointer", "pointer")


def size_that_helps():
    """A hint of --pad auto only where it is off; a rank's size is named."""
    tensors = experts("model.layers.0.mlp.experts", 4, 256, 512)
    save("w4a4", qwen3(quark(), 1, 4, 256, 512), tensors)
    flags = ("--arch", "gfx950", "--env", "VLLM_ROCM_USE_AITER=1", *RELEASE)
    done = run("explain", "w4a4", *flags, "--tp-size", "4", "--pad", "none")
    assert done.returncode == 4 and "--pad auto rounds" in done.stderr, done.stderr
    save("w4a4", qwen3(quark(), 1, 4, 256, 128), experts("model.layers.0.mlp.experts", 4, 256, 128))
    done = run("explain", "w4a4", *flags)
    if done.returncode:
        assert "--pad auto" not in done.stderr and "128" in done.stderr, done.stderr


def main():
    print("seed", SEED)
    for check in (draft_stages, latent_experts, layers_of_two_kinds, constants_of_python, index_with_others, hdf5_with_records,
                  other_words_of_configs, only_a_config, no_checkpoints, size_that_helps):
        check()
        print("ok", check.__name__)


if __name__ == "__main__":
    main()
