"""Draft layers (MTP, DSpark): what the releases' own draft classes made of a config (tests/engines/draft_methods.py), and what the program makes of a
checkpoint with that config. Where the draft's experts are MXFP4 to both, they are repacked; where the config leaves them out and they are BF16, they
stay. draft_layers.py PROGRAM TESTDATA, in an empty directory."""
import json
import lzma
import os
import random
import sys

from drawn_models import experts, layers_named, numbers, other_experts, run, save

SHOWN = int(os.environ.get("MXFP4_TEST_CONFIGS", "40"))  # pairs of a config and a release, other ones on each run
ENDINGS = {"compressed-tensors": (".weight_packed", ".weight_scale", ("U8", "U8")), "quark": (".weight", ".weight_scale", ("U8", "U8")),
           "fp8": (".weight", ".scale", ("I8", "F8_E8M0"))}


def text_of(config):
    return config.get("text_config", config)


def has_experts(config, layer):
    text = text_of(config)
    frequency = text.get("moe_layer_freq")
    return layer >= text.get("first_k_dense_replace", 0) and (not isinstance(frequency, list) or frequency[layer] == 1)


def own_layers(entry, quantization):
    """The model's own layers with experts, and those that the config leaves out or quantizes otherwise."""
    layers = [i for i in range(text_of(entry["config"])["num_hidden_layers"]) if has_experts(entry["config"], i)]
    said = [*quantization.get("ignore", []), *quantization.get("exclude", []), *quantization.get("layer_quant_config", {})]
    for group in quantization.get("config_groups", {}).values():
        said += group["targets"] if group["weights"]["num_bits"] == 8 else []
    # The patterns that tests/engines/draft_methods.py draws of a number match the model's own layer of that number too.
    patterns = {i: (f"re:.*layers\\.{i}\\..*experts.*", f"re:.*layers\\.{i}\\..*", f"*layers.{i}.*") for i in layers}
    return layers, [i for i in layers if any(pattern in said for pattern in patterns[i])]


def names_draft(quantization):
    return "mtp" in json.dumps([quantization.get("config_groups"), quantization.get("layer_quant_config")])


def checkpoint(entry, quantization, draft_is_ours):
    code, scale, kinds = ENDINGS[quantization["quant_method"]]
    layers, out = own_layers(entry, quantization)
    tensors = {}
    places = [(entry["main"].format(i), i not in out) for i in layers] + [(entry["draft"], draft_is_ours)]
    for module, ours in places:
        made = experts(module, 4, 256, 256, entry["words"], codes=code, scale=scale, kinds=kinds) if ours else other_experts(module, 4, 256, 256, "BF16")
        if not ours and entry["words"][0] == "w1":
            made = {name.replace("gate_proj", "w1").replace("up_proj", "w3").replace("down_proj", "w2"): value for name, value in made.items()}
        tensors |= made
    tensors[entry["main"].format(0).rsplit(".", 2)[0] + ".input_layernorm.weight"] = numbers("BF16", 256)
    save("model", entry["config"] | {"quantization_config": quantization}, tensors)
    unlike = out + [text_of(entry["config"])["num_hidden_layers"]] * (not draft_is_ours and "layers." in entry["draft"])
    return len(layers) - len(out), set(unlike)


def judged(entry, row, release):
    """What is wrong with the program's answer, by tensors of either kind; nothing where it is right."""
    answer, quantization = row["answers"][release], row["quantization"]
    if "stop" in answer or len(answer["drafts"]) != 1 or answer["main"] in ("other", "stop"):
        return []
    ((name, method),) = answer["drafts"].items()
    renamed = name != entry["draft"]  # the config's words may mean one name and not the other
    machine = ["--arch", "gfx950", "--env", "VLLM_ROCM_USE_AITER=1"] if quantization["quant_method"] == "quark" else ["--arch", "sm100"]
    wrong = []
    for ours in (True, False):
        number, unlike = checkpoint(entry, quantization, ours)
        done = run("convert", "model", "-o", "out", "--dry-run", "--json", *machine, "--revision", release)
        said = json.loads(done.stdout) if done.stdout.startswith("{") else {}
        layers = said.get("num_layers")
        if ours and method != "other":
            right = layers == number + 1 or renamed and names_draft(quantization)
        elif not ours and done.returncode == 3:  # where every layer is MXFP4
            right = quantization["quant_method"] == "fp8" and "found BF16" in done.stderr
        else:
            right = layers in (number, number + ours)  # the release stops at tensors of MXFP4 that it takes for no such experts
        if layers == number + ours:
            right = right and layers_named(said["warnings"]) == unlike  # a draft's layer has a number after the model's own
        if not right:
            wrong.append((release, row["model"], quantization, answer, "MXFP4" if ours else "BF16", layers, number, said.get("warnings"), done.stderr[-300:]))
    return wrong


def main():
    with lzma.open(os.path.join(sys.argv[2], "engines", "draft_methods.json.xz"), "rt") as file:
        made = json.load(file)
    pairs = [(row, release) for row in made["rows"] for release in row["answers"]]
    seed = random.randrange(1 << 30)
    print("seed", seed)
    wrong = []
    for row, release in random.Random(seed).sample(pairs, min(SHOWN, len(pairs))):
        wrong += judged(made["models"][row["model"]], row, release)
    assert not wrong, "\n".join(map(str, wrong)) + f"\n{len(wrong)} wrong"


if __name__ == "__main__":
    main()
