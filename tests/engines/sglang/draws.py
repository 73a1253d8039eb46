"""Asks SGLang's own code and the program the same drawn questions, which are not those of choices.py's grid: other sizes, devices, ranks, runners and spellings.

usage: draws.py PROGRAM VERSION=ROOT... [--seed N] [--count N]      ROOT: the unpacked wheel of sglang; prints what differs, and a count
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

import choices
import store

DEVICES = ("sm80", "sm86", "sm89", "sm90", "sm100", "sm103", "sm120", "sm121", "gfx942", "gfx950", "cpu", "cpu-amx", "xpu")
RUNNERS = (*choices.RUNNERS, "auto", "auto", "flashinfer_trtllm", "flashinfer_cutlass", "flashinfer_cutedsl", "flashinfer_trtllm_routed")
SPELLINGS = ("1", "0", "true", "False", "YES", "y", "no", "on", "2", "")
VARIABLES = ("SGLANG_USE_AITER", "SGLANG_USE_AITER_MOE_GU_ITLV", "SGLANG_DSV4_FP4_DEQUANT")
# The functions that took the weights, as the program calls them.
TAKERS = {"triton": "TRITON", "flashinfer trtllm": "FLASHINFER_TRTLLM_MXFP4_MXFP8", "flashinfer cutlass sm90": "FLASHINFER_CUTLASS_MXFP4_BF16",
          "flashinfer cutlass mxfp8": "FLASHINFER_CUTLASS_MXFP4_MXFP8", "marlin": "MARLIN", "deep_gemm": "DEEPGEMM_MXFP4", "humming": "HUMMING",
          "aiter": "AITER_MXFP4_BF16", "amx": "CPU", "as loaded": "XPU"}


def models_of(version):
    new = tuple(map(int, version.split(".")))
    return ["gpt_oss", "deepseek_v4"] + (["kimi_k3"] if new >= (0, 5, 20) else []) + (["bailing_moe_v3"] if new >= (0, 5, 23) else [])


def drawn(source, version, count):
    """(device, environment, rows): a process of SGLang plays one device and one set of variables."""
    for _ in range(count):
        device = source.choice(DEVICES)
        environment = {name: source.choice(SPELLINGS) for name in VARIABLES if source.random() < (0.6 if device.startswith("gfx") else 0.25)}
        rows = []
        for _ in range(12):
            model, ep = source.choice(models_of(version)), source.random() < 0.3
            tp = source.choice((1, 2, 4, 8, 16) if ep else (1, 2, 3, 4, 5, 6, 8, 16))
            experts = 16 * source.randint(1, 4)
            hidden = source.choice((128, 64, 32)) * source.randint(8, 60)
            inter = source.choice((128, 64, 32)) * source.randint(4, 40)
            inter *= 1 if ep or inter % tp == 0 and inter // tp % 32 == 0 else tp
            if model == "gpt_oss" and source.random() < 0.5:
                hidden, inter = 2880, 2880
            if not ep and inter % tp:
                tp = 1
            rows.append({"model": model, "runner": source.choice(RUNNERS), "tp": tp, "ep": ep and tp > 1, "sizes": (experts, hidden, inter)})
        yield device, environment, rows


def said_by_sglang(root, device, environment, rows):
    """choices.asked() with each row's own sizes."""
    plain = choices.answer

    def with_sizes(row):
        choices.MODELS[row["model"]] = (choices.MODELS[row["model"]][0], *row["sizes"])
        return plain(row)
    choices.answer = with_sizes
    try:
        return choices.asked(root, device, environment, rows)
    finally:
        choices.answer = plain


def said_by_program(program, version, device, environment, row):
    choices.MODELS[row["model"]] = (choices.MODELS[row["model"]][0], *row["sizes"])
    config = store.model_config(row["model"])
    config |= {"num_attention_heads": 240, "num_key_value_heads": 240}
    machine = ["--platform", "xpu"] if device == "xpu" else ["--arch", {"cpu": "x86_64", "cpu-amx": "x86_64-amx"}.get(device, device)]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(config, file)
        file.flush()
        words = [program, "explain", "--model-config", file.name, *machine, "--revision", f"sglang-{version}", "--moe-runner-backend", row["runner"],
                 "--tp-size", str(row["tp"]), *(["--enable-expert-parallel"] if row["ep"] else []), "--json"]
        for name, value in environment.items():
            words += ["--env", f"{name}={value}"]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        return json.loads(done.stdout), done.stderr
    except ValueError:
        return {}, done.stderr or f"exit status {done.returncode}"


def differs(answer, made, words):
    """What SGLang said that the program does not say; empty: nothing."""
    text = json.dumps(made) + words
    if "error" in answer:
        return "" if answer["error"] in text else f"{answer['error']}: {answer['message'][:100]}"
    path = answer["path"]
    if path in TAKERS:
        stops = "SGLang stops with" in text and "first request" not in text
        wrong = "experts are wrong" in text  # SGLang takes a path of which the rules know that it mistakes rows
        return "" if wrong or made.get("backend") == TAKERS[path] and not stops else path
    word = "BF16" if path == "bf16" else "FP8"
    return "" if not made.get("backend") and word in text else path


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("roots", nargs="+", metavar="VERSION=ROOT")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--count", type=int, default=10, help="devices with variables for each release, each with 12 questions")
    arguments = parser.parse_args()
    source, asked, wrong = random.Random(arguments.seed), 0, 0
    for named in arguments.roots:
        version, root = named.split("=", 1)
        for device, environment, rows in drawn(source, version, arguments.count):
            for row, answer in zip(rows, said_by_sglang(root, device, environment, rows)):
                made, words = said_by_program(arguments.program, version, device, environment, row)
                asked += 1
                difference = differs(answer, made, words)
                if difference:
                    wrong += 1
                    print(f"{version} {device} {environment} {row}: SGLang {difference}; program {made.get('backend')} {made.get('message') or words.strip()[:200]}")
    print(f"seed {arguments.seed}: {asked} asked, {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
