"""Stores what choices.py and layouts.py executed of releases in testdata/engines: sglang_choices.json, sglang_layouts.json.

usage: store.py choices RESULT...          a result of `choices.py --all`
       store.py layouts VERSION=RESULT...  results of layouts.py
A release that is given replaces the one of its number; the others stay.
"""
import hashlib
import json
import os
import sys

import choices

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "testdata", "engines")
PLUGIN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "scripts", "python", "mxfp4_repack", "sglang", "revisions.json")
PLUGIN_CODE = ("mxfp4", "mxfp4_flashinfer_cutlass_moe", "mxfp4_flashinfer_trtllm_moe", "mxfp4_marlin_moe", "marlin_utils_fp4")
PARALLEL = [[1, False], [2, False], [4, False], [8, False], [2, True], [8, True]]


def model_config(name):
    """A config.json of the grid's model, as far as rules look at it."""
    architecture, experts, hidden, inter = choices.MODELS[name]
    model_type = {"deepseek_v4_odd": "deepseek_v4"}.get(name, name)
    quantization = {"gpt_oss": {"quant_method": "mxfp4"},
                    "kimi_k3": {"quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized", "config_groups": {"group_0": {
                        "targets": ["Linear"], "format": "mxfp4-pack-quantized", "weights": {
                            "num_bits": 4, "type": "float", "strategy": "group", "group_size": 32, "symmetric": True}}}},
                    "bailing_moe_v3": {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128],
                                       "routed_experts_quant_method": "mxfp4"}}.get(name, {"quant_method": "fp8", "activation_scheme": "dynamic"})
    # Heads that every rank count of the grid divides.
    made = {"architectures": [architecture], "model_type": model_type, "hidden_size": hidden, "num_hidden_layers": 1, "num_attention_heads": 64,
            "num_key_value_heads": 8, "num_experts_per_tok": 4, "quantization_config": quantization}
    made |= {"num_local_experts": experts, "intermediate_size": inter} if name == "gpt_oss" else {"num_experts" if name in ("kimi_k3", "bailing_moe_v3") else "n_routed_experts": experts, "moe_intermediate_size": inter}
    return made | ({"hidden_act": "situ"} if name == "kimi_k3" else {})


def short(answer):
    """What is compared: the path, or the error; not which runner `auto` became."""
    return {key: answer[key] for key in ("path", "error", "message") if key in answer}


def packed(rows):
    answers, found = [], {}
    for row in rows:
        variables = ",".join(f"{name}={value}" for name, value in sorted(row["env"].items())) or "-"
        key = f"{row['model']} {row['device']} {variables} {row['runner']}"
        one = short(row["answer"])
        if one not in answers:
            answers.append(one)
        at = PARALLEL.index([row["tp"], row["ep"]])
        found.setdefault(key, [None] * len(PARALLEL))[at] = answers.index(one)
    return {"questions": len(rows), "answers": answers, "rows": found}


def path(name):
    return os.path.join(FOLDER, f"sglang_{name}.json")


def old(name, empty):
    return json.load(open(path(name))) if os.path.exists(path(name)) else empty


def store_plugin(version, pins, site):
    """What the plug-in knows of a release: its pins, and the files whose code was executed."""
    folder = os.path.join(site, "sglang", "srt", "layers", "quantization")
    code = {}
    for name in PLUGIN_CODE:
        with open(os.path.join(folder, name + ".py"), "rb") as file:
            code[name] = hashlib.sha256(file.read()).hexdigest()[:16]
    with open(PLUGIN, encoding="utf-8") as file:
        known = json.load(file)
    known[f"sglang-{version}"] = {"kernel_libraries": {"flashinfer": pins["flashinfer-python"]}, "sglang_kernel": pins["sglang-kernel"], "code": code}
    with open(PLUGIN, "w", encoding="utf-8") as out:
        out.write(json.dumps(dict(sorted(known.items(), key=lambda one: tuple(map(int, one[0].partition("-")[2].split("."))))), indent=1) + "\n")


def store_choices(files):
    stored = old("choices", {"releases": {}})
    for file in files:
        for version, rows in json.load(open(file))["releases"].items():
            known = [row for row in rows if not (version != "0.5.23" and row["model"] == "bailing_moe_v3") and not (version == "0.5.16" and row["model"] == "kimi_k3")]
            stored["releases"][version] = packed(known)
    stored["models"] = {name: model_config(name) for name in choices.MODELS}
    stored["parallel"] = PARALLEL
    lines = []
    for version, release in sorted(stored["releases"].items()):
        rows = ",\n".join(f"    {json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}" for key, value in release["rows"].items())
        answers = ",\n".join(f"    {json.dumps(one)}" for one in release["answers"])
        lines.append(f"  {json.dumps(version)}: {{\"questions\": {release['questions']}, \"answers\": [\n{answers}],\n   \"rows\": {{\n{rows}}}}}")
    with open(path("choices"), "w") as out:
        out.write(f"{{\"models\": {json.dumps(stored['models'])},\n \"parallel\": {json.dumps(PARALLEL)},\n \"releases\": {{\n" + ",\n".join(lines) + "}}\n")


def store_layouts(pairs):
    stored = old("layouts", {"executed": []})["executed"]
    for pair in pairs:
        version, file = pair.split("=", 1)
        release = f"sglang-{version}"
        for row in stored:
            row["releases"] = [name for name in row["releases"] if name != release]
        for line in open(file):
            row = json.loads(line)
            same = next((one for one in stored if {k: v for k, v in one.items() if k != "releases"} == row), None)
            if same is None:
                stored.append({**row, "releases": [release]})
            else:
                same["releases"] = sorted([*same["releases"], release])
    stored = [row for row in stored if row["releases"]]
    with open(path("layouts"), "w") as out:
        out.write("{\"executed\": [\n" + ",\n".join(json.dumps(row) for row in stored) + "\n]}\n")


if __name__ == "__main__":
    (store_choices if sys.argv[1] == "choices" else store_layouts)(sys.argv[2:])
