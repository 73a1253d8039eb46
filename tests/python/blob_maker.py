"""Blobs for the tests beside this file: the program's own, of small models."""
import json
import os
import subprocess
from pathlib import Path

import layer_files
import mxfp4_repack
import witness

BIN = os.environ["BIN"]
TESTDATA = Path(os.environ["TESTDATA"])
PREFIX = "layers.0.experts"
SEED = "vllm-2026-05-18"
NEWER = "vllm-2026-08-17"
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


def judged(out):
    """`out`, whose blobs the witness found as they should be."""
    for directory in witness.blobs_at(out):
        witness.judge(directory)
    return out


def convert(source, out, backend, *flags):
    arch = ARCHES[backend]
    machine = ["--arch", arch] if arch else ["--platform", PLATFORMS[backend]]
    run("convert", source, "-o", out, "--backend", backend, "-q", "--force",
        "--allow-known-defects", *machine, *flags, *(() if "--revision" in flags else ("--revision", SEED)))
    return judged(out)


def sealed(manifest):
    """The text of a manifest as the program writes it."""
    import xxhash

    said = json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    seal = xxhash.xxh3_128(said.encode()).hexdigest()
    return json.dumps({**manifest, "manifest_xxh3_128": seal}, indent=2, ensure_ascii=False) + "\n"
