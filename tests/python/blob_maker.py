"""Blobs for the tests beside this file: the program's own, from golden inputs and small models."""
import hashlib
import json
import os
import subprocess
from pathlib import Path

import numpy as np

import layer_files
import mxfp4_repack
import witness

BIN = os.environ["BIN"]
TESTDATA = Path(os.environ["TESTDATA"])
GOLDEN = TESTDATA / "golden"
PREFIX = "layers.0.experts"
SEED = "vllm-2026-05-18"  # the revision that made the goldens
NEWER = "vllm-2026-08-17"
KNOBS = ("params_dtype", "marlin_input_dtype", "humming_input_dtype", "cuda_compiler", "aiter_weight", "tp_size")
PLATFORMS = {"XPU": "xpu", "CPU": "cpu"}
# A serving machine for each backend.
ARCHES = {
    "AITER_MXFP4_BF16": "gfx950", "AITER_MXFP4_FP8": "gfx950", "AITER_MXFP4_MXFP4": "gfx950",
    "BATCHED_MARLIN": "sm90", "CPU": "x86_64", "DEEPGEMM_MXFP4": "sm100", "EMULATION": "sm90",
    "FLASHINFER_CUTLASS_MXFP4_BF16": "sm90", "FLASHINFER_CUTLASS_MXFP4_MXFP8": "sm100",
    "FLASHINFER_TRTLLM_MXFP4_BF16": "sm100", "FLASHINFER_TRTLLM_MXFP4_MXFP8": "sm100",
    "HUMMING": "sm90", "MARLIN": "sm90", "TRITON": "sm90", "TRITON_UNFUSED": "sm90", "XPU": None,
}


def run(*arguments):
    """Runs the program; its text on failure."""
    done = subprocess.run([BIN, *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        command = " ".join(map(str, arguments))
        raise AssertionError(f"{command}: exit {done.returncode}\n{done.stdout}")


def model(name, layers=2, experts=4, hidden=128, inter=128):
    """A small gpt-oss checkpoint in the scratch directory; made once."""
    if not os.path.exists(name):
        layer_files.make_gpt_oss(name, layers, experts, hidden, inter)
    return name


def with_revision(flags):
    return flags if "--revision" in flags else (*flags, "--revision", SEED)


def judged(out):
    """`out`, whose blobs the witness found as they should be."""
    for directory in witness.blobs_at(out):
        witness.judge(directory)
    return out


def convert(source, out, backend, *flags):
    arch = ARCHES[backend]
    machine = ["--arch", arch] if arch else ["--platform", PLATFORMS[backend]]
    run("convert", source, "-o", out, "--backend", backend, "-q", "--force",
        "--allow-known-defects", *machine, *with_revision(flags))
    return judged(out)


def convert_case(tensors, case, out, *flags):
    """A golden case: its loaded tensors {name: (dtype, array)} and what its file says about it."""
    source = out + ".safetensors"
    layer_files.write(source, {f"{PREFIX}.{name}": value for name, value in tensors.items()},
                      {"family": case["family"]})
    rocm = str(case.get("arch")).startswith("gfx")
    platform = "rocm" if rocm else PLATFORMS.get(case["backend"], "cuda")
    arguments = ["--backend", case["backend"], "--platform", case.get("platform", platform)]
    if case.get("arch") not in (None, "any", "xpu"):
        arguments += ["--arch", case["arch"]]
    for knob in KNOBS:
        if str(case.get(knob, "none")) not in ("none", "bfloat16", "1"):
            arguments += ["--knob", f"{knob}={case[knob]}"]
    if case.get("activation"):
        arguments += ["--activation", case["activation"]]
    for name, value in case.get("env", {}).items():
        arguments += ["--env", f"{name}={value}"]
    run("convert", source, "-o", out, "-q", "--force", "--allow-known-defects", "--family",
        case["family"], *arguments, *with_revision(flags))
    return judged(out)


def _stream(seed, size):
    """`size` bytes of splitmix64, the rule of tests/golden/drawn_inputs.hpp."""
    count = np.arange(1, (size + 7) // 8 + 1, dtype=np.uint64)
    z = np.uint64(seed) + count * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return (z ^ z >> np.uint64(31)).astype("<u8").view("u1")[:size]


def draw(case):
    """The loaded tensors of a digest case, {name: (dtype, array)}."""
    experts = case["E"]
    hidden, inter, seed = case["H"], case["I"], case["seed"] * 16
    shapes = {"w13_weight": (experts, 2 * inter, hidden // 2),
              "w2_weight": (experts, hidden, inter // 2),
              "w13_weight_scale": (experts, 2 * inter, hidden // 32),
              "w2_weight_scale": (experts, hidden, inter // 32)}
    tensors = {}
    for index, (name, shape) in enumerate(shapes.items()):
        data = _stream(seed + index, int(np.prod(shape)))
        if name.endswith("_scale") and case.get("scale_mode", "typical") == "typical":
            data = (112 + (data & 31)).astype("u1")
        tensors[name] = ("U8", data.reshape(shape))
    if case.get("bias", True):
        for index, (name, shape) in enumerate({"w13_bias": (experts, 2 * inter),
                                               "w2_bias": (experts, hidden)}.items()):
            x = _stream(seed + 4 + index, 2 * int(np.prod(shape))).view("<u2")
            tensors[name] = ("BF16", ((x & 0x8000) | 120 + (x >> 7 & 7) << 7 | (x & 0x7F))
                             .astype("<u2").reshape(shape))
    mode = case.get("input_scale_mode")
    for index, name in enumerate(("w13_input_scale", "w2_input_scale")) if mode else ():
        x = _stream(seed + 6 + index, 4 * experts).view("<u4")
        bits = (118 + (x >> 23 & 7) << 23) | (x & 0x7FFFFF)
        if mode != "spread":
            bits = bits[0] + (np.arange(experts) if mode == "near" else np.zeros(experts))
        tensors[name] = ("F32", bits.astype("<u4").view("<f4"))
    return tensors


def small_cases():
    """(title, loaded tensors, case, {name: (dtype, shape, bytes)} that must come out)."""
    for path in sorted(GOLDEN.glob("*/*.safetensors")):
        data = path.read_bytes()
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8:8 + length])
        case = header.pop("__metadata__")
        if case.get("kind") == "primitive":
            continue
        arrays, _ = layer_files.parse(data)
        inputs = {name[3:]: (header[name]["dtype"], array) for name, array in arrays.items()
                  if name.startswith("in.")}
        wanted = {name[4:]: (header[name]["dtype"], header[name]["shape"], array.tobytes())
                  for name, array in arrays.items() if name.startswith("out.")}
        yield f"{path.parent.name}/{path.name}", inputs, case, wanted


def digest_cases(file_name):
    """(title, case) of every row of the golden files of this name."""
    for path in sorted(GOLDEN.glob(f"*/{file_name}")):
        for row, case in enumerate(json.loads(path.read_text())):
            yield (f"{path.parent.name}/{file_name}[{row}]",
                   {"backend": path.parent.name.upper(), **case})


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def reseal(directory, change):
    """Lets `change` alter the manifest's object in place, and seals it as the program does."""
    path = os.path.join(directory, mxfp4_repack.MANIFEST_NAME)
    with open(path, encoding="utf-8") as file:
        manifest = json.load(file)
    change(manifest)
    manifest.pop("manifest_xxh3_128", None)
    text = json.dumps(manifest, indent=2, ensure_ascii=False)
    text = text[:text.rindex("\n}")]
    seal = mxfp4_repack.xxh3_128(text.encode())
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'{text},\n  "manifest_xxh3_128": "{seal}"\n}}\n')
