#!/usr/bin/env python3
"""Drawn deployments of drawn model classes: what the wheels' own classes do, against what the program says of them.

usage: classes.py PROGRAM VERSION... [--draw SEED COUNT] [--cache DIR]

Draws a class of the release's registry, a platform, a quantization, sizes of parallelism, EPLB with redundant experts and adapters. executed_classes.py
says what the release's own class does, and the program's notes on the class must say the same. A question that some class
of the model's cannot be made for is counted apart, with the reason. Exit code 0: none differs. Needs README.md's Python.
"""
import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile

import config_keys
import grid
import models
import wheels
from executed_classes import ARCHES, EXPERTS

# What the program says, by what the engine does.
SAID = {"class": "raises NotImplementedError on this platform", "quantization": "does not take {method} on this platform",
        "adapters": "does not take adapters (LoRA)", "spread": "LoRA on experts that are spread over ranks", "ranks": "at least as many experts as tensor",
        "redundant": "hands no redundant experts on"}
CONFIG = {"model_type": "qwen3_moe", "hidden_size": 256, "intermediate_size": 512, "moe_intermediate_size": 256, "num_hidden_layers": 2,
          "num_experts": EXPERTS, "num_experts_per_tok": 2, "hidden_act": "silu", "num_attention_heads": 8, "num_key_value_heads": 8}
QUANTIZATIONS = {"compressed-tensors": config_keys.compressed_tensors(None), "quark": config_keys.quark(config_keys.MX | {"is_dynamic": True}),
                 "auto-round": config_keys.AUTO_ROUND, "mxfp4": {"quant_method": "mxfp4"}}
# The methods that some backend serves on a platform, or that the platform refuses.
SERVED = {"cuda": tuple(QUANTIZATIONS), "rocm": ("quark", "mxfp4"), "xpu": tuple(QUANTIZATIONS), "cpu": ("quark", "mxfp4")}


def drawn(text, registries):
    draw = grid.Draw(text)
    version = draw.of(sorted(registries))
    redundant = draw.of((0, 0, 2, 4))
    platform = draw.of(("cuda", "cuda", "rocm", "xpu", "cpu"))
    return {"class": draw.of(registries[version]), "version": version, "platform": platform, "method": draw.of(SERVED[platform]), "tp": draw.of((1, 1, 2, 4, 8)), "dp": draw.of((1, 1, 2)), "ep": draw.of((False, True)),
            "lora": draw.of((False, True)), "redundant": redundant,
            "all2all": draw.of(("allgather_reducescatter",) * 4 + ("deepep_high_throughput", "deepep_low_latency", "nixl_ep"))}


def flags(question):
    words = ["--revision", question["version"], "--tp-size", question["tp"], "--dp-size", question["dp"]]
    words += ["--arch", ARCHES[question["platform"]]] if ARCHES[question["platform"]] else ["--platform", question["platform"]]
    words += ["--env", "VLLM_ROCM_USE_AITER=1"] if question["platform"] == "rocm" else []
    words += ["--enable-lora"] if question["lora"] else []
    words += ["--enable-expert-parallel", "--all2all-backend", question["all2all"]] if question["ep"] else []
    words += ["--enable-eplb", "--num-redundant-experts", question["redundant"]] if question["ep"] and question["redundant"] else []
    return [str(word) for word in words]


def said(program, question, folder):
    """What the program says, of SAID; None: no backend serves the method there, so that no class is asked."""
    config = {**CONFIG, "architectures": [question["class"]], "quantization_config": QUANTIZATIONS[question["method"]]}
    with open(os.path.join(folder, "config.json"), "w") as out:
        json.dump(config, out)
    ran = subprocess.run([program, "explain", folder, "--json", *flags(question)], capture_output=True, text=True)
    answer = json.loads(ran.stdout)
    if not answer.get("backend"):
        return None
    text = "; ".join([*answer["notes"], (answer.get("error") or {}).get("message") or ""])
    found = {word for word, words in SAID.items() if words.format(method=question["method"]) in text}
    # Where a class is not begun, or stops, what comes after it is not known.
    return sorted(found - ({"spread", "redundant"} if "ranks" in found else set()) if "class" not in found else found & {"class", "quantization"})


def ask_engine(version, platform, questions, cache):
    command = [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "executed_classes.py"), version, platform, "--cache", cache]
    ran = subprocess.run(command, input=json.dumps(questions), capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"{version} {platform}: {ran.stderr[-2000:]}")
    return json.loads(ran.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("versions", nargs="+")
    parser.add_argument("--cache", default=wheels.default_cache())
    parser.add_argument("--draw", nargs=2, metavar=("SEED", "COUNT"), default=("classes", "2000"))
    arguments = parser.parse_args()
    registries = {}
    for version in arguments.versions:
        names = models.Modules(wheels.site(version, arguments.cache))
        registries[version] = sorted(name for name in names.registry if names.abilities(name) is not None)
    seed, count = arguments.draw
    parts = collections.defaultdict(list)
    for number in range(int(count)):
        question = drawn(f"{seed} {number}", registries)
        parts[question["version"], question["platform"]].append(question)
    equal, differ, unserved, unknown = 0, 0, 0, collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for (version, platform), questions in sorted(parts.items()):
            for question, answer in zip(questions, ask_engine(version, platform, questions, arguments.cache)):
                if "unknown" in answer:
                    unknown[answer["unknown"]] += 1
                    continue
                program = said(arguments.program, question, folder)
                if program is None:
                    unserved += 1
                elif program == answer["found"]:
                    equal += 1
                else:
                    differ += 1
                    print(json.dumps(question), "engine:", answer["found"], "program:", program, flush=True)
            print(version, platform, len(questions), flush=True)
    for reason, times in unknown.most_common():
        print(f"not made, {times}: {reason}")
    print(f"{equal} equal, {differ} differ, {unserved} of methods that no backend serves there, {sum(unknown.values())} of classes that were not made")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
