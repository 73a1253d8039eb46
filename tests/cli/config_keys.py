"""Quantization configs that lack a key or say another value: which method each release's own code chose, or that it took the experts for no MXFP4
(tests/engines/config_keys.py); and so does the program. A config at which a release stops is not asked: that release says so to everybody.
config_keys.py PROGRAM TESTDATA, in an empty directory."""
import json
import lzma
import os
import random
import subprocess
import sys

BIN, TESTDATA = sys.argv[1:3]
SHOWN = int(os.environ.get("MXFP4_TEST_CONFIGS", "120"))  # pairs of a config and a release, other ones on each run
MACHINES = {"cuda": ("--arch", "sm100"), "rocm": ("--arch", "gfx950", "--env", "VLLM_ROCM_USE_AITER=1")}


def answer(row, release):
    """The method class, or None, and what the program says."""
    config = {"hidden_size": 256, "intermediate_size": 256, "moe_intermediate_size": 256, "num_hidden_layers": 1, "num_experts_per_tok": 2,
              "hidden_act": "silu", **row["model"], "quantization_config": row["quantization"]}
    count = {"gpt_oss": "num_local_experts", "qwen3_moe": "num_experts"}.get(row["model"]["model_type"], "n_routed_experts")
    with open("config.json", "w") as file:
        json.dump({**config, count: 4}, file)
    done = subprocess.run([BIN, "explain", "config.json", *MACHINES[row["platform"]], "--revision", release, "--json"], capture_output=True, text=True)
    assert done.returncode in (0, 3, 4), done.stderr
    if not done.stdout.startswith("{"):
        return None, done.stderr
    return json.loads(done.stdout).get("method"), done.stderr


def main():
    with lzma.open(os.path.join(TESTDATA, "engines", "config_keys.json.xz"), "rt") as file:
        rows = json.load(file)["rows"]
    seed = random.randrange(1 << 30)
    print("seed", seed)
    pairs = [(row, release) for row in rows for release, answer in row["answers"].items() if answer != "stop"]
    chosen = random.Random(seed).sample(pairs, min(SHOWN, len(pairs)))
    wrong = 0
    for row, release in chosen:
        wanted = row["answers"][release]
        got, words = answer(row, release)
        if got != (None if wanted == "other" else wanted):
            wrong += 1
            print(release, row["platform"], row["model"], json.dumps(row["quantization"]), "\n  release", wanted, "\n  program", got, words)
    assert not wrong, f"{wrong} of {len(chosen)}"


main()
