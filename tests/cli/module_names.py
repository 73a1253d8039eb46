"""Names that the engine's model classes decide (testdata/engines/module_names.json, models.json): which release has the class; which layers' experts
Quark's exclude leaves out; how many layers, and which beginnings of names, compressed-tensors' targets are asked for. module_names.py PROGRAM TESTDATA,
in an empty directory."""
import json
import os
import sys

from drawn_models import GATED, RANDOM, SEED, compressed_tensors, draw, experts, explained, group, numbers, other_experts, quark, qwen3, run, save
from layer_methods import layers_named

SHOWN = int(os.environ.get("MXFP4_TEST_CONFIGS", "40"))
OTHERWISE = "by a name that they do not have in the engine"
BY_PART = "leaves a layer's experts out only by the name of the whole"


def read(name):
    with open(os.path.join(sys.argv[2], "engines", name)) as file:
        return json.load(file)


def some(rows):
    """Other ones on each seed."""
    rows = list(rows)
    return [rows[i] for i in RANDOM.permutation(len(rows))[:SHOWN]]


def classes_of_releases(made):
    """Each class of the wheels, in a release that has it or lacks it."""
    releases = list(made["wheels"])
    known = sorted({name for row in read("models.json")["models"] for name in row["architectures"]})
    lacking = [(name, release) for name in known for release in made["absent"].get(name, ())]
    having = [(name, release) for name in known for release in releases if release not in made["absent"].get(name, ())]
    assert len(lacking) > 400 and len(having) > len(lacking)
    for name, release in some(lacking) + some(having):
        config = {**qwen3(quark(), 2, 4, 256, 256), "architectures": [name]}
        if name == "KimiK3ForConditionalGeneration":
            config["hidden_act"] = "situ"
        done, said = explained(config, release, "--arch", "gfx950", "--env", "VLLM_ROCM_USE_AITER=1")
        first = next(other for other in releases if other not in made["absent"].get(name, ()))
        words = f"vllm-{release} has no model class {name}, which vllm-{first} has first"
        warned = [warning for warning in said.get("warnings", ()) if "has no model class" in warning]
        if release in made["absent"].get(name, ()) and "nor has it the activation" in done.stderr:
            assert done.returncode == 4 and words in done.stderr, (name, release, done.stderr)
            continue
        assert done.returncode in (0, 4) and "method" in said, (name, release, done.stderr)
        assert len(warned) == (release in made["absent"].get(name, ())) and all(words in warning for warning in warned), (name, release, said["warnings"])
    name, release = draw(*((name, release) for name, release in lacking if not name.startswith("MiniMaxM3") and release != "0.21.0"))
    save("lacks", {**qwen3(quark(), 1, 4, 256, 256), "architectures": [name]}, experts("model.layers.0.mlp.experts", 4, 256, 256))
    done = run("convert", "lacks", "-o", "out", "--arch", "gfx950", "--env", "VLLM_ROCM_USE_AITER=1", "--revision", release)
    assert done.returncode == 0 and f"vllm-{release} has no model class {name}" in done.stderr, (name, release, done.stderr)
    config = {**qwen3(quark(), 2, 4, 256, 256), "architectures": [name, "OfAPlugin"]}
    assert "has no model class" not in explained(config, release, "--arch", "gfx950")[0].stderr, "the second class may be the user's own"


def layers_left_out(made):
    """From the config alone: the layers that the release's own code leaves out; and what of the list names no experts of the class."""
    for row in some(made["rows"]):
        release = draw(*row["answers"])
        # Up to 0.28 this class does not rename "model."; the program asks no release for its names.
        older = [int(number) for number in release.split(".")] < [0, 29]
        if older and "Omni" in row["architecture"] and any(name.startswith("model.") for name in row["exclude"]):
            continue
        config = {**qwen3(quark(), 4, 4, 256, 256), "architectures": [row["architecture"]], "model_type": row["model_type"],
                  "n_routed_experts": 4}
        config["quantization_config"]["exclude"] += row["exclude"]
        done, said = explained(config, release, "--arch", "gfx950", "--env", "VLLM_ROCM_USE_AITER=1")
        where = (row, release, done.stdout[:300], done.stderr)
        left_out = set(row["answers"][release])
        if "method" not in said:
            # Layers that are named by parts only: an old release makes MXFP4 experts of them, and stops at their tensors.
            fewer = left_out < set(row["answers"]["0.33.0"])
            assert BY_PART in done.stderr and fewer or len(left_out) == 4 and "left out" in done.stderr, where
        else:
            assert layers_named(said["warnings"]) == left_out, where


def stops_at_other_names():
    """With weights: a layer that is left out by a name of another class is one that the engine takes for MXFP4."""
    hidden, inter, left = 256, 256, int(RANDOM.integers(0, 3))
    modules = ["model.language_model.layers.{}.mlp.experts", "language_model.model.layers.{}.mlp.experts", "model.layers.{}.mlp.experts"]
    config = {**qwen3(quark(), 3, 4, hidden, inter), "architectures": ["Glm5NextForConditionalGeneration"], "model_type": "glm5_next"}
    for named, right in zip(modules, (True, True, False)):
        tensors = {}
        for layer in range(3):
            make = other_experts if layer == left else experts
            tensors |= make(modules[0].format(layer), 4, hidden, inter, *(("BF16",) if layer == left else ()))
        config["quantization_config"]["exclude"] = ["lm_head", *(f"{named.format(left)}.{e}.{p}" for e in range(4) for p in GATED)]
        save("flash", config, tensors)
        done = run("explain", "flash", "--arch", "gfx950", "--env", "VLLM_ROCM_USE_AITER=1", "--revision", draw("0.31.0", "0.33.0"), "--json")
        warnings = json.loads(done.stdout)["warnings"]
        assert layers_named(warnings) == {left}, (named, warnings)
        assert any(OTHERWISE in warning and f"layer {left} " in warning for warning in warnings) == (not right), (named, warnings)


def targets_of_any_layer():
    """The tensors' own names are asked, whatever lies before the layers and however many there are."""
    for _ in range(4):
        layers, last = 200, int(RANDOM.integers(129, 200))
        before = draw("model.", "backbone.decoder.", "language_model.model.", "", f"stage{RANDOM.integers(9)}.")
        word, other = draw(("gate_proj", "w1"), ("w1", "gate_proj"))
        words = {"gate_proj": GATED, "w1": ("w1", "w3", "w2")}[word]
        beginning = before.replace(".", "\\.")
        all_of, one_of = f"re:^{beginning}layers\\.\\d+\\.mlp\\.experts\\.\\d+\\..*", f"re:^{beginning}layers\\.{last}\\.mlp\\.experts\\.\\d+\\.{word}$"
        others = f"re:^{beginning}layers\\.(?!{last}\\.)\\d+\\.mlp\\.experts\\.\\d+\\..*"
        targets = draw([all_of], [others, one_of, one_of.replace(word, words[1]), one_of.replace(word, words[2])])
        config = qwen3(compressed_tensors(group(targets)), layers, 1, 128, 128)
        config["num_experts_per_tok"] = 1
        del config["architectures"]
        tensors = {}
        for layer in range(layers):
            tensors |= experts(f"{before}layers.{layer}.mlp.experts", 1, 128, 128, words=words, codes=".weight_packed")
        tensors["model.norm.weight"] = numbers("BF16", 128)
        save("deep", config, tensors)
        release = draw("0.29.0", "0.31.0", "0.33.0")
        done = run("explain", "deep", "--arch", "sm90", "--revision", release, "--json")
        where = (before, targets, release, done.stderr, done.stdout[:400])
        assert done.returncode == 0, where
        notes = json.loads(done.stdout)["notes"]
        stops = any("no targets that name gate_proj" in note for note in notes)
        assert stops == (word == "w1" and len(targets) > 1), where


def main():
    print("seed", SEED)
    made = read("module_names.json")
    classes_of_releases(made)
    layers_left_out(made)
    stops_at_other_names()
    targets_of_any_layer()


if __name__ == "__main__":
    main()
