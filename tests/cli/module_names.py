"""Names that the engine's model classes decide (testdata/engines/module_names.json): which layers' experts Quark's exclude leaves out; how many layers,
and which beginnings of names, compressed-tensors' targets are asked for. module_names.py PROGRAM TESTDATA,
in an empty directory."""
import json
import os
import sys

from drawn_models import GATED, RANDOM, SEED, compressed_tensors, draw, experts, explained, group, numbers, quark, qwen3, run, save
from layer_methods import READS_PARTS, layers_named

SHOWN = int(os.environ.get("MXFP4_TEST_CONFIGS", "40"))


def read(name):
    with open(os.path.join(sys.argv[2], "engines", name)) as file:
        return json.load(file)


def some(rows):
    """Other ones on each seed."""
    rows = list(rows)
    return [rows[i] for i in RANDOM.permutation(len(rows))[:SHOWN]]


def layers_left_out(made):
    """From the config alone: the layers that the release's own code leaves out; and what of the list names no experts of the class."""
    for row in some(made["rows"]):
        release = draw(*(name for name in row["answers"] if name >= READS_PARTS))
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
            assert len(left_out) == 4 and "left out" in done.stderr, where
        else:
            assert layers_named(said["warnings"]) == left_out, where


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


def main():
    print("seed", SEED)
    made = read("module_names.json")
    layers_left_out(made)
    targets_of_any_layer()


if __name__ == "__main__":
    main()
