"""Makes small checkpoints as people have them, of drawn sizes and names, and asks the program about them. The tests that import it take
PROGRAM as their first word and run in an empty directory."""
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


def experts(module, count, hidden, inter, words=GATED, **how):
    return layer_files.experts(module, count, hidden, inter, words, random=RANDOM, **how)


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
    return {"quant_method": "quark", "export": {"kv_cache_group": []}, "layer_quant_config": {}, "layer_type_quant_config": {}, "exclude": ["lm_head"],
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


def layers_named(warnings):
    """The layers that a warning says stay as they are."""
    found = set()
    for warning in warnings:
        named = re.match(r"layers? ([\d, -]+) ha(?:ve|s) experts that are not MXFP4", warning)
        for part in named.group(1).split(", ") if named else ():
            first, _, last = part.partition("-")
            found.update(range(int(first), int(last or first) + 1))
    return found


def explained(config, release, *flags):
    """What the program says of a config alone: the process, and its document, empty for what it cannot read."""
    os.makedirs("config", exist_ok=True)
    with open("config/config.json", "w") as file:
        json.dump(config, file)
    done = run("explain", "config/config.json", *flags, "--revision", release, "--json")
    return done, json.loads(done.stdout) if done.stdout.startswith("{") else {}


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


def check_all(*checks):
    print("seed", SEED)
    for check in checks:
        check()
        print("ok", check.__name__)
