"""Configs and containers as published, and the words for what is not a checkpoint."""
import json
import os
import shutil

import drawn_models
import layer_files
import numpy
from drawn_models import (GATED, NUMBERED, SEED, check_all, compressed_tensors, convert, draw, experts, explain, group,
                          numbers, other_experts, quark, qwen3, refused, run, save)


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
            refused("down_proj_scales: element type: neither integers nor floats", "model.h5")
        else:
            convert("model.h5", "--arch", "sm90")


def other_words_of_configs():
    """Ling's MXFP4 experts in an FP8 model, Quark's specification as a list of one, FP8 experts of a module rule."""
    ling = qwen3({"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128], "routed_experts_quant_method": "mxfp4"}, 1, 4, 256, 128)
    ling["model_type"] = "bailing_moe_v3"
    tensors = experts("model.layers.0.mlp.experts", 4, 256, 128, scale=".weight_scale_inv")
    (manifest,), _ = convert(save("ling", ling, tensors), "--arch", "sm100")
    assert explain("ling", "--arch", "sm100")["method"] == "Mxfp4MoEMethod"
    # The model class asks for its key only beside blocks.
    del ling["quantization_config"]["weight_block_size"]
    refused("a model of type bailing_moe_v3 is quantized as FP8", save("ling", ling, tensors))
    ling["quantization_config"] |= {"weight_block_size": [128, 128], "routed_experts_quant_method": "nvfp4"}
    refused("routed_experts_quant_method: nvfp4, expected mxfp4", save("ling", ling, tensors))
    ling["quantization_config"]["routed_experts_quant_method"] = "mxfp4"
    ling["model_type"] = "qwen3_moe"
    refused("a model of type qwen3_moe is quantized as FP8", save("ling", ling, tensors))
    listed = quark()
    listed["global_quant_config"]["weight"] = [listed["global_quant_config"]["weight"]]
    plain = experts("model.layers.0.mlp.experts", 4, 256, 128)
    convert(save("listed", qwen3(listed, 1, 4, 256, 128), plain), "--arch", "gfx950")
    # Executed: 0.30.0 and later read it; older releases ask the list for its dtype.
    for group in ("weight", "input_tensors"):
        config = quark()
        whole = config["global_quant_config"]
        config["layer_quant_config"] = {"*experts*": {**whole, group: [whole[group]]} if whole[group] else {**whole, "weight": [whole["weight"]]}}
        save("listed", qwen3(config, 1, 4, 256, 128), plain)
        for release, code in (("0.33.0", 0), ("0.30.0", 0), ("0.29.0", 4), ("0.21.0", 4)):
            done = run("explain", "listed", "--arch", "gfx950", "--revision", release)
            assert done.returncode == code, (release, group, done.stderr)
            assert code == 0 or "does not read a Quark specification that is a list of one" in done.stderr, done.stderr
    # Executed: 0.30.0 and 0.33.0 ask what static activations have; older releases do not.
    whole = {"dtype": "fp8_e4m3", "is_dynamic": False, "qscheme": "per_tensor", "symmetric": True}
    for left in ({}, {"qscheme": None}, {"symmetric": None}, {"symmetric": False}, {"qscheme": "per_channel"}):
        config = quark()
        config["global_quant_config"]["input_tensors"] = {**whole, **left}
        save("static", qwen3(config, 1, 4, 256, 128), plain)
        for release, asks in (("0.33.0", True), ("0.30.0", True), ("0.29.0", False)):
            done = run("explain", "--model-config", "static/config.json", "--arch", "gfx950", "--revision", release)
            refused_by_form = "static activations of Quark only where they say" in done.stderr
            assert refused_by_form == bool(left and asks) and done.returncode == (4 if refused_by_form else 0), (release, left, done.stderr)
    # What holds for the rest of the model is not asked of the experts.
    config = quark()
    config["layer_quant_config"] = {"*mlp.experts*": dict(config["global_quant_config"])}
    config["global_quant_config"] = {**config["global_quant_config"], "input_tensors": {**whole, "symmetric": None}}
    save("static", qwen3(config, 1, 4, 256, 128), plain)
    done = run("explain", "static", "--arch", "gfx950", "--revision", "0.33.0")
    assert done.returncode == 0, done.stderr
    listed["global_quant_config"]["weight"] *= 2
    refused("global_quant_config.weight: .* expected an object", save("listed", qwen3(listed, 1, 4, 256, 128), plain))


def left_out_experts():
    """Experts that the config leaves out of its quantization beside tensors of MXFP4. Executed: 0.33.0 makes plain weights and stops at these tensors,
    of compressed-tensors and of Quark; its mxfp4 asks no list for experts."""
    module = f"re:.*layers.{draw(0, 1)}.mlp.experts.*"
    for pattern, said in ((module, "leaves out the experts of layer " + module[12]), ("re:.*mlp.experts.*", "leaves out the experts of layers 0-1"), (None, "")):
        ignored = ["lm_head", *([pattern] if pattern else [])]
        for quantization, codes, flags in (
                ({**compressed_tensors(group(["Linear"])), "ignore": ignored}, ".weight_packed", ("--arch", "sm90")),
                ({**quark(), "exclude": ignored}, ".weight", ("--arch", "gfx950")),
                ({"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.0.mlp.experts"]}, ".weight", ("--arch", "sm90"))):
            tensors = {}
            for layer in range(2):
                tensors.update(experts(f"model.layers.{layer}.mlp.experts", 4, 256, 256, codes=codes))
            _, text = convert(save("left", qwen3(quantization, 2, 4, 256, 256), tensors), *flags)
            warned = said if quantization["quant_method"] != "mxfp4" else ""
            assert (warned in text) if warned else "leaves out" not in text, (quantization, text)
    # AutoRound's blocks, by the key that is read first, where both are there.
    rounds = {"quant_method": "auto-round", "bits": 4, "group_size": 32, "sym": True, "data_type": "mx_fp", "packing_format": "auto_round:llm_compressor"}
    out = draw(0, 1)
    kept, key = f"model.layers.{1 - out}.", draw("block_name_to_quantize", "to_quant_block_names")
    for blocks, said in (({key: draw(kept, [kept])}, f"leaves out the experts of layer {out},"), ({key: draw("visual.blocks", ["visual."])}, "layers 0-1"),
                         ({key: draw("model.layers", "visual,model.layers")}, ""), ({"block_name_to_quantize": None, "to_quant_block_names": kept}, "")):
        tensors = {}
        for layer in range(2):
            tensors.update(experts(f"model.layers.{layer}.mlp.experts", 4, 256, 256, codes=".weight_packed"))
        _, text = convert(save("left", qwen3({**rounds, **blocks}, 2, 4, 256, 256), tensors), "--arch", "sm90")
        assert (said in text) if said else "leaves out" not in text, (blocks, text)
    unnamed = compressed_tensors(group(["re:.*self_attn.*"]))
    tensors = experts("model.layers.0.mlp.experts", 4, 256, 256, codes=".weight_packed")
    _, text = convert(save("left", qwen3(unnamed, 1, 4, 256, 256), tensors), "--arch", "sm90")
    assert "leaves out the experts of layer 0" in text, text


def parts_left_out():
    """Quark's exclude that names single experts of a layer: from 0.26.0 on the layer is left out. Executed: older releases ask for the whole's name,
    make MXFP4 for that layer, and stop at its plain weights; of a draft, which they do not serve, it does not matter."""
    out = draw(0, 1)
    module = f"model.layers.{out}.mlp.experts"
    tensors = experts(f"model.layers.{1 - out}.mlp.experts", 4, 256, 256)
    tensors.update(other_experts(module, 4, 256, 256, "BF16"))
    parts = draw([f"{module}.{draw(0, 3)}.{draw(*GATED)}"], [f"{module}.*.{draw(*GATED)}"], [f"{module}.{e}.{p}" for e in range(4) for p in GATED])
    for exclude, older in ((parts, 4), ([module, *parts], 0), ([*parts, module], 0), ([f"re:.*layers.{out}.mlp.experts"], 0)):
        save("parts", qwen3({**quark(), "exclude": ["lm_head", *exclude]}, 2, 4, 256, 256), tensors)
        for release, code in (("0.25.1", older), (draw("0.22.0", "0.23.0", "0.24.0"), older), ("0.26.0", 0), (draw("0.28.0", "0.33.0"), 0)):
            done = run("explain", "parts", "--arch", "gfx950", "--revision", release)
            named = f"names single ones of layer {out};" in done.stderr
            assert named == bool(code) and (not named or done.returncode == code), (exclude, release, done.stderr)
    drafts = [name.replace(f".{out}.", ".2.") for name in parts]
    save("parts", qwen3({**quark(), "exclude": drafts}, 2, 4, 256, 256), experts(module, 4, 256, 256) | experts(f"model.layers.{1 - out}.mlp.experts", 4, 256, 256))
    assert "names single ones" not in run("explain", "parts", "--arch", "gfx950", "--revision", "0.25.1").stderr


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
            for other in ("next", "checkpoint"):
                whole.pop(other, None), answer.pop(other, None)
            assert answer == whole, (name, words)
        assert "config_only" not in explain(name + "/config.json", *flags)  # the weights beside it
    # Who fetches the small files has the index, too, and tokenizer and generation files.
    shutil.copy("plain/config.json", "alone/config.json")
    with open("alone/model.safetensors.index.json", "w") as file:
        json.dump({"weight_map": {"lm_head.weight": "model-00001-of-00002.safetensors"}}, file)
    answer = explain("alone", "--arch", "sm90")
    assert "config_only" in answer and answer["backend"] == explain("plain", "--arch", "sm90")["backend"], answer
    done = run("convert", "alone", "-o", "nothing", "--arch", "sm90")
    assert done.returncode == 3 and "1 of 1 files is not there" in done.stderr, done.stderr
    os.remove("alone/model.safetensors.index.json")
    with open("alone/tokenizer.json", "w") as file:
        json.dump({"version": "1.0", "model": {"type": draw("BPE", "Unigram")}}, file)
    refused("tokenizer.json: unknown content", "alone/tokenizer.json")
    broken = {**qwen3(quark(), 3, 6, 256, 256)}
    del broken["num_hidden_layers"]
    with open("alone/config.json", "w") as file:
        json.dump(broken, file)
    refused("num_hidden_layers: missing; without weights it is not known", "alone")
    done = run("convert", "alone", "-o", "nothing", "--arch", "sm90")
    assert done.returncode == 3 and "no checkpoint here" in done.stderr, done.stderr


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
    refused(r"no MXFP4 expert tensors such as .*; there is .*experts.gate_up_proj.weight_packed \(U8\)", save("fused", qwen3(linear, 1, 4, 256, 128), fused))
    for words in (GATED, NUMBERED):
        ungated = {name: tensor for name, tensor in experts(module, 4, 256, 128, words, codes=".weight_packed").items() if words[0] not in name}
        refused("its experts are ungated, with two projections", save("ungated", qwen3(linear, 1, 4, 256, 128), ungated), without="missing")
    gpt_oss("merged", 1)
    tensors = {name: ("BF16" if array.dtype == "u2" else "U8", array) for name, array in layer_files.read("merged/model.safetensors")[0].items()}
    prefix = "model.layers.1.mlp.experts."
    for name, shape in (("gate_up_proj", (4, 64, 128)), ("gate_up_proj_bias", (4, 128)), ("down_proj", (4, 64, 64)), ("down_proj_bias", (4, 64))):
        tensors[prefix + name] = numbers("BF16", *shape)
    refused(r"gate_up_proj_blocks: missing; the layer also has .* \(BF16\)", save("merged", config, tensors))
    save("pointer", "version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 3\n", tensors)
    refused("config.json: a Git LFS pointer", "pointer")


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
    other = draw(".weight_quantizer.scale", ".weight_scale_inv", ".scale")
    save("scales", qwen3(quark(), 1, 2, hidden, inter), experts("model.layers.0.mlp.experts", 2, hidden, inter, scale=other))
    done = run("explain", "scales", "--arch", "gfx950")
    assert done.returncode == 3 and "gate_proj.weight_scale: missing; the layer also has" in done.stderr, done.stderr
    # One expert that was left as it was; and a tensor that is missing without another in its place.
    tensors = experts("model.layers.0.mlp.experts", 2, hidden, inter, codes=".weight_packed")
    word = draw(*drawn_models.GATED)
    del tensors[f"model.layers.0.mlp.experts.1.{word}.weight_packed"], tensors[f"model.layers.0.mlp.experts.1.{word}.weight_scale"]
    config = qwen3(compressed_tensors(group(["Linear"])), 1, 2, hidden, inter)
    for more in ({}, {f"model.layers.0.mlp.experts.1.{word}.weight": numbers("BF16", 8, 8)}):
        done = run("explain", save("one", config, {**tensors, **more}), "--arch", "sm90")
        assert done.returncode == 3 and f"experts.1.{word}.weight_packed: missing" in done.stderr, done.stderr
    gpt_oss("gone")
    gone = {name: ("BF16" if array.dtype == "u2" else "U8", array) for name, array in layer_files.read("gone/model.safetensors")[0].items()}
    del gone["model.layers.1.mlp.experts.down_proj_scales"]
    with open("gone/config.json") as file:
        done = run("explain", save("gone", file.read(), gone), "--arch", "sm90")
    assert done.returncode == 3 and "down_proj_scales: missing" in done.stderr and "hint:" not in done.stderr, done.stderr


if __name__ == "__main__":
    check_all(constants_of_python, index_with_others, hdf5_with_records, other_words_of_configs, left_out_experts, parts_left_out, no_config,
              only_a_config, no_checkpoints, as_the_engine_reads)
