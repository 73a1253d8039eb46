"""Configs that mix quantizations by layer: which layers the program takes, and by which method, is what each release's own config class chose
(tests/engines/layer_methods.py). layer_methods.py PROGRAM TESTDATA, in an empty directory."""
import json
import lzma
import os
import random
import re
import subprocess
import sys

BIN, TESTDATA = sys.argv[1:3]
SHOWN = int(os.environ.get("MXFP4_TEST_CONFIGS", "60"))  # pairs of a config and a release, other ones on each run
# A refusal is also right where a layer of the release's could be recognized in one way only: it asks a backend for each.
SEVERAL = "the engine chooses a backend for each"
# Older releases read only an exclusion of the whole, and stop at the weights of a layer that is left out by its parts.
READS_PARTS = "0.26.0"


def layers_named(warnings):
    """The layers that a warning says stay as they are."""
    found = set()
    for warning in warnings:
        named = re.match(r"layers? ([\d, -]+) ha(?:ve|s) experts that are not MXFP4", warning)
        for part in named.group(1).split(", ") if named else ():
            first, _, last = part.partition("-")
            found.update(range(int(first), int(last or first) + 1))
    return found


def answer(row, experts, release):
    """(method, layers that stay), or None and what the program says."""
    config = {"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_size": 256, "moe_intermediate_size": 256,
              "num_hidden_layers": len(row["answers"][release]), "num_experts": experts, "num_experts_per_tok": 2, "hidden_act": "silu",
              "quantization_config": row["quantization"]}
    with open("config.json", "w") as file:
        json.dump(config, file)
    quark = row["quantization"]["quant_method"] == "quark"
    machine = ["--arch", "gfx950", "--env", "VLLM_ROCM_USE_AITER=1"] if quark else ["--arch", "sm100"]
    done = subprocess.run([BIN, "explain", "config.json", *machine, "--revision", release, "--json"], capture_output=True, text=True)
    said = json.loads(done.stdout) if done.returncode != 3 else {}
    if "method" not in said:
        return None, done.stderr
    return (said["method"], layers_named(said["warnings"])), done.stderr


def main():
    with lzma.open(os.path.join(TESTDATA, "engines", "layer_methods.json.xz"), "rt") as file:
        made = json.load(file)
    seed = random.randrange(1 << 30)
    print("seed", seed)
    pairs = [(row, release) for row in made["rows"] for release in row["answers"]
             if row["quantization"]["quant_method"] != "quark" or release >= READS_PARTS]
    chosen = random.Random(seed).sample(pairs, min(SHOWN, len(pairs)))
    wrong = 0
    for row, release in chosen:
        got, words = answer(row, made["experts"], release)
        wanted = row["answers"][release]
        methods = set(wanted) - {"other", "stop"}
        others = {i for i, name in enumerate(wanted) if name == "other"}
        stops = {i for i, name in enumerate(wanted) if name == "stop"}
        if got is None:
            right = not methods or bool(stops) or SEVERAL in words
        else:
            # A layer at which the release stops may stay or not: the release says so itself.
            right = (got[0] in methods or not methods and bool(stops)) and others <= got[1] <= others | stops
        if not right:
            wrong += 1
            print(release, json.dumps(row["quantization"]), "\n  release", wanted, "\n  program", got or words)
    assert not wrong, f"{wrong} of {len(chosen)}"


if __name__ == "__main__":
    main()
