"""Configs as published. What the releases' own code makes of one: cli.published_layers, config_keys."""
import json
import os
import shutil

import layer_files
from drawn_models import SEED, check_all, compressed_tensors, convert, draw, experts, explain, group, quark, qwen3, refused, run, save


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


def index_with_others():
    """Tensors that only the index lists are of no matter, but for experts."""
    gpt_oss("ghost")
    name = "ghost/model.safetensors.index.json"
    tensors, _ = layer_files.read("ghost/model.safetensors")
    index = {"weight_map": dict.fromkeys([*tensors, "lm_head.weight", "mtp.fc.weight"], "model.safetensors")}
    with open(name, "w") as file:
        json.dump(index, file)
    convert("ghost", "--arch", "sm90")
    index["weight_map"]["model.layers.7.mlp.experts.down_proj_blocks"] = "model.safetensors"
    with open(name, "w") as file:
        json.dump(index, file)
    refused("layers.7.mlp.experts.down_proj_blocks: the index says that it is here, but it is not", "ghost")


def no_config():
    """Without a config.json, sizes are rounded as by the method class after which the style is named."""
    experts_of = "model.layers.0.mlp.experts"
    hidden, inter = 32 * draw(5, 7, 9), 32 * draw(3, 5, 7)
    cases = (("mxfp4", {"quant_method": "mxfp4"}, experts(experts_of, 2, hidden, inter)),
             ("compressed_tensors", compressed_tensors(group(["Linear"])), experts(experts_of, 2, hidden, inter, codes=".weight_packed")))
    for style, quantization, tensors in cases:
        with_config, without = save("with", qwen3(quantization, 1, 2, hidden, inter), tensors), save("without", None, tensors)
        for release in (draw("0.21.0", "0.23.0", "0.25.0"), draw("0.26.0", "0.29.0", "0.33.0")):
            for backend in ("MARLIN", "TRITON"):
                flags = ("--arch", "sm90", "--backend", backend, "--revision", release, "--json")
                family = ("--family", "generic" if style == "compressed_tensors" else "gpt_oss")
                answers = [json.loads(run("explain", *words, *flags, *family).stdout)
                           for words in ((with_config,), (without, "--style", style))]
                padded = [answer.get("sizes", {}).get("padded", "refused") for answer in answers]
                assert padded[0] == padded[1] != "refused", (style, release, backend, padded, answers)


def only_a_config():
    """The answer before the download is the answer after it."""
    gpt_oss("plain")
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
        flags += ("--tp-size", "2")
        whole = explain(name, *flags)
        for words in (("alone",), ("alone/config.json",), ("other-name.json",), ("--model-config", "other-name.json")):
            answer = explain(*words, *flags)
            assert "the weights could show" in answer.pop("config_only")
            assert answer.pop("next").startswith("mxfp4-repack convert CHECKPOINT -o OUT"), words
            for other in ("next", "serve", "checkpoint"):
                whole.pop(other, None), answer.pop(other, None)
            assert answer == whole, (name, words)
        assert "config_only" not in explain(name + "/config.json", *flags)  # the weights beside it


def as_the_engine_reads():
    """What the engines' reader makes of a config: methods by any letters, the last of equal keys, a text model under its other names."""
    rounds = {"quant_method": "auto-round", "bits": 4, "group_size": 32, "sym": True, "data_type": "mx_fp", "packing_format": "auto_round:llm_compressor"}
    hidden, inter = 128 * draw(1, 2, 3), 128 * draw(1, 2)
    for quantization, codes, spellings, flags in (
            (compressed_tensors(group(["Linear"])), ".weight_packed", ("compressed_tensors", "Compressed-Tensors", "COMPRESSED_TENSORS"), ("--arch", draw("sm90", "sm100"))),
            (quark(), ".weight", ("Quark", "QUARK"), ("--arch", "gfx950")), ({"quant_method": "mxfp4"}, ".weight", ("MXFP4", "Mxfp4"), ("--arch", "sm90")),
            (rounds, ".weight_packed", ("Auto-Round", "INC"), ("--arch", "sm120"))):
        tensors = experts("model.layers.0.mlp.experts", 2, hidden, inter, codes=codes)
        plain = explain(save("plain", qwen3(quantization, 1, 2, hidden, inter), tensors), *flags)
        other = explain(save("plain", qwen3({**quantization, "quant_method": draw(*spellings)}, 1, 2, hidden, inter), tensors), *flags)
        assert plain == other, (plain, other)
    config = qwen3(compressed_tensors(group(["Linear"])), 1, 2, hidden, inter)
    tensors = experts("model.layers.0.mlp.experts", 2, hidden, inter, codes=".weight_packed")
    text = json.dumps(config).replace('{"arch', f'{{"moe_intermediate_size": {inter + 32}, "arch', 1)
    convert(save("twice", text, tensors), "--arch", "sm90")
    refused(f"moe_intermediate_size: {inter + 32}, but", save("twice", json.dumps(config)[:-1] + f', "moe_intermediate_size": {inter + 32}}}', tensors))
    quantization = config.pop("quantization_config")
    for outer in ({"llm_config": config}, {"language_config": config}, {"thinker_config": {"text_config": config}}):
        wrapped = {"architectures": ["InternVLChatModel"], "model_type": "internvl_chat", "vision_config": {"hidden_size": 8}, "quantization_config": quantization, **outer}
        for path in (save("wrapped", wrapped, {"language_model." + name: tensor for name, tensor in tensors.items()}), "wrapped/config.json"):
            answer = explain(path, "--arch", "sm90")
            assert answer["sizes"]["rank"] == {"num_experts": 2, "hidden_size": hidden, "intermediate_size": inter}, answer


if __name__ == "__main__":
    check_all(constants_of_python, index_with_others, no_config, only_a_config,
              as_the_engine_reads)
