#!/usr/bin/env python3
"""Measure on a GPU how fast experts are made from a checkpoint on the way there, and how fast blobs load.

    made_check.py --build build/release [--work /dev/shm/made-check] [--layers 3] [--report FILE]

Draws a gpt-oss checkpoint of random bytes with the sizes of gpt-oss-120b (three layers, 5.3 GB) into --work,
which should lie in memory, and prints a table: for each layout and 4, 8 and 14 threads, GB/s of the tensors as
they lie on the GPU, and the share of a pinned copy that was measured just before, medians of 3 loads after one
that does not count; then a layer made from the checkpoint's tensors in the GPU's memory. Then the blobs of TRITON on sm90, plain and compressed, and the same layers without a blob:
the first load of a fresh process, opening and allocation counted, and its later ones. All three are compared
with the plain blob's files, byte, shape and stride; a blob's load takes less than 64 MiB of GPU memory beside its tensors, and bits
that were turned in a blob are found. Exits 1 if one is not so, or a plain blob has less than 0.8 of the pinned copy. Takes about 4
minutes on 16 cores; needs a GPU, torch and numpy. --build is a build directory with mxfp4-repack and libmxfp4_repack.so.0; --program and --library
name them elsewhere.
"""
import argparse
import contextlib
import gc
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts" / "python"), str(ROOT / "tests" / "cli")]

EXPERTS, HIDDEN, INTER = 128, 2880, 2880
THREADS = (4, 8, 14)
LOADS = 3
LAYOUTS = {
    "TRTLLM": {"backend": "FLASHINFER_TRTLLM_MXFP4_MXFP8", "arch": "sm100"},
    "CUTLASS_MXFP8": {"backend": "FLASHINFER_CUTLASS_MXFP4_MXFP8", "arch": "sm100"},
    "DEEPGEMM": {"backend": "DEEPGEMM_MXFP4", "arch": "sm100"},
    "identity": {"backend": "EMULATION", "arch": "sm90"},
    "TRITON sm90": {"backend": "TRITON", "arch": "sm90"},
    "MARLIN": {"backend": "MARLIN", "arch": "sm90"},
    "CUTLASS sm90": {"backend": "FLASHINFER_CUTLASS_MXFP4_BF16", "arch": "sm90"},
}
BLOB = LAYOUTS["TRITON sm90"]
BLOBS = ("none", "zstd")
SHARE_OF_PINNED, BESIDE_LIMIT, TURNED_BITS = 0.8, 64 << 20, 40


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("--program", type=Path)
    parser.add_argument("--library", type=Path)
    parser.add_argument("--work", type=Path, default=Path("/dev/shm/made-check"))
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--experts", type=int, default=EXPERTS)
    parser.add_argument("--makes", choices=("cpu", "gpu"), default="gpu", help="who runs the layouts' passes")
    parser.add_argument("--report", type=Path)
    parser.add_argument("--first", type=Path, help=argparse.SUPPRESS)  # a fresh process: a blob
    parser.add_argument("--conversion", type=Path, help=argparse.SUPPRESS)  # then --first is a checkpoint
    found = parser.parse_args()
    found.program = (found.program or found.build / "mxfp4-repack").resolve()
    found.library = (found.library or found.build / "libmxfp4_repack.so.0").resolve()
    os.environ["MXFP4_REPACK_LIBRARY"] = str(found.library)
    os.environ["MXFP4_REPACK"] = str(found.program)
    return found


ARGUMENTS = parse_arguments()

import numpy as np
import torch

import layer_files
import mxfp4_repack
from mxfp4_repack import loader

report = {"gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
          "cores": len(os.sched_getaffinity(0)), "rows": [], "wrong": []}


def make_checkpoint(directory):
    """The same bytes in each layer: only their places differ."""
    directory.mkdir(parents=True)
    draw, first = np.random.default_rng(1), "model.layers.0."
    tensors = layer_files.gpt_oss_layer(0, ARGUMENTS.experts, HIDDEN, INTER, draw)
    for number in range(ARGUMENTS.layers):
        named = {name.replace(first, f"model.layers.{number}."): tensor for name, tensor in tensors.items()}
        layer_files.write(directory / f"model-{number:05}.safetensors", named)
    (directory / "config.json").write_text(json.dumps(layer_files.gpt_oss_config(
        ARGUMENTS.layers, ARGUMENTS.experts, HIDDEN, INTER)))


def seconds_of(action):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    action()
    torch.cuda.synchronize()
    return time.perf_counter() - begin


class Pinned:
    """Rate of a pinned copy, the ceiling."""

    def __init__(self):
        self.host = torch.empty(1 << 30, dtype=torch.uint8, pin_memory=True)
        self.device = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")

    def rate(self):
        copy = lambda: self.device.copy_(self.host, non_blocking=True)
        copy()
        return self.host.numel() / min(seconds_of(copy) for _ in range(3)) / 1e9


def load_all(by, layers):
    for layer in layers:
        by.load(layer)


def measure(name, flags, pinned):
    try:
        with mxfp4_repack.open_checkpoint(ARGUMENTS.work / "model", **flags) as made:
            layers = [made.layer(prefix) for prefix in made.layers]
            size = sum(layer.info(tensor).nbytes for layer in layers for tensor in layer.tensors)
            for threads in THREADS:
                by = loader.Loader("cuda", threads=threads, makes=ARGUMENTS.makes)
                load_all(by, layers)
                ceiling = pinned.rate()
                got = size / statistics.median(seconds_of(lambda: load_all(by, layers)) for _ in range(LOADS)) / 1e9
                by.close()
                report["rows"].append({"layout": name, "threads": threads, "rate": got, "pinned": ceiling})
                print(f"{name:15} {threads:2} threads {got:6.1f} GB/s  {got / ceiling:5.2f} of {ceiling:.1f}", flush=True)
            measure_held(name, layers[0])
            for layer in layers:
                layer.close()
    except mxfp4_repack.BlobError as error:
        print(f"{name:15} not run: {error}", flush=True)


def measure_held(name, layer):
    """A layer made again from the checkpoint's tensors in the GPU's memory, beside a load of it, which it has to equal."""
    if not layer.can_make_on_gpu():
        return print(f"{name:15} from GPU memory: only CPUs make it", flush=True)
    raw, _ = layer_files.read(str(ARGUMENTS.work / "model" / "model-00000.safetensors"))
    held = {key: torch.from_numpy(array.copy().view("u1")).cuda() for key, array in raw.items()}
    flats = {key: torch.zeros(layer.info(key).nbytes, dtype=torch.uint8, device="cuda") for key in layer.tensors}
    by = loader.Loader("cuda", threads=THREADS[-1])
    by.load_into(layer, flats)
    loaded = statistics.median(seconds_of(lambda: by.load_into(layer, flats)) for _ in range(LOADS))
    want = {key: flat.clone() for key, flat in flats.items()}
    for flat in flats.values():
        flat.zero_()
    by.make_into(layer, flats, held)
    wrong = [key for key in flats if not torch.equal(flats[key], want[key])]
    made = statistics.median(seconds_of(lambda: by.make_into(layer, flats, held)) for _ in range(LOADS))
    copied = statistics.median(seconds_of(lambda: [want[key].copy_(flat) for key, flat in flats.items()]) for _ in range(LOADS))
    by.close()
    report["wrong"] += wrong
    report["rows"].append({"layout": name, "held": made, "loaded": loaded, "copied": copied})
    print(f"{name:15} from GPU memory {sum(map(len, want.values())) / made / 1e9:6.0f} GB/s, {copied / made:.2f} of a copy, "
          f"{made / loaded:.3f} of a load's time; {'equal' if not wrong else f'DIFFER: {wrong}'}", flush=True)


def fresh_process(what, path, *more):
    """First and later loads of a process whose CUDA context exists."""
    done = subprocess.run([sys.executable, __file__, "--program", ARGUMENTS.program, "--library", ARGUMENTS.library,
                           "--first", path, *more], stdout=subprocess.PIPE, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    report["rows"].append({"layout": what, **found})
    if what == "blob, plain" and found["later"] < SHARE_OF_PINNED * found["pinned"]:
        report["wrong"].append(what)
    print(f"{what:15} first {found['first']:6.1f} GB/s  {found['first'] / found['pinned']:5.2f}, later "
          f"{found['later']:6.1f} GB/s  {found['later'] / found['pinned']:5.2f} of {found['pinned']:.1f}", flush=True)


def run_first():
    pinned = Pinned()
    ceiling = pinned.rate()
    del pinned
    torch.cuda.empty_cache()
    conversion = json.loads(ARGUMENTS.conversion.read_text()) if ARGUMENTS.conversion else None
    sizes = []

    def load():
        with (mxfp4_repack.open_blob(ARGUMENTS.first) if conversion is None else
              mxfp4_repack.open_checkpoint(ARGUMENTS.first, conversion=conversion)) as blob:
            kept = []
            for prefix in blob.layers:
                with blob.layer(prefix) as layer:
                    kept.append(layer.to_device("cuda"))
                    sizes.append(sum(layer.info(name).nbytes for name in layer.tensors))

    times = []
    for _ in range(1 + LOADS):
        sizes.clear()
        times.append(seconds_of(load))
        gc.collect()
        torch.cuda.empty_cache()
    rates = [sum(sizes) / taken / 1e9 for taken in times]
    print(json.dumps({"first": rates[0], "later": statistics.median(rates[1:]), "pinned": ceiling}))


def check(what, source, plain):
    """Whether a source's first layer lies on the GPU as the plain blob's file has it, and what a blob's load takes beside it."""
    source.to_device("cuda")  # its ring and its threads stay
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_reserved(), torch.cuda.mem_get_info()[0]
    tensors = source.to_device("cuda")
    size = sum(source.info(name).nbytes for name in tensors)
    beside = max(torch.cuda.max_memory_reserved() - before[0], before[1] - torch.cuda.mem_get_info()[0]) - size
    wrong = [f"{what}: {beside / 2**20:.1f} MiB beside the tensors"] if what != "made" and beside >= BESIDE_LIMIT else []
    for name, tensor in tensors.items():
        info = plain.info(name)
        flat = torch.as_strided(tensor, (info.nbytes // tensor.element_size(),), (1,))
        want = torch.from_numpy(plain.numpy(name, stored=True).reshape(-1).view("u1")).cuda()
        if not torch.equal(flat.view(torch.uint8), want) or tuple(tensor.shape) != info.shape or tensor.stride() != info.strides:
            wrong.append(f"{what}: {name}")
    print(f"{what}: {beside / 2**20:.1f} MiB beside the tensors; {'equal' if not wrong else f'WRONG: {wrong}'}", flush=True)
    report["wrong"] += wrong


def turn(path, at, bit):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ bit]))


def check_damage(method):
    """Bits of a small blob, turned after it was opened."""
    base, random, missed = ARGUMENTS.work / "damage", np.random.default_rng(2), []
    shutil.rmtree(base, ignore_errors=True)
    layer_files.make_gpt_oss(str(base / "model"), 1, 5, 320, 352)
    blob = mxfp4_repack.open_blob(mxfp4_repack.convert(base / "model", base / method, compress=method, **BLOB).output)
    for _ in range(TURNED_BITS):
        with blob.layer(0) as layer:
            size = os.path.getsize(layer.path)
            at, bit = int(random.integers(size // 4, size * 3 // 4)), 1 << int(random.integers(8))
            turn(layer.path, at, bit)
            try:
                layer.to_device("cuda")
                missed.append(f"{method}: a bit of byte {at}")
            except mxfp4_repack.BlobError:
                pass
            turn(layer.path, at, bit)
    print(f"{TURNED_BITS} turned bits of a blob, {method}: not found {missed or 'none'}", flush=True)
    report["wrong"] += missed


def main():
    if not torch.cuda.is_available():
        sys.exit("needs a GPU")
    if ARGUMENTS.first:
        return run_first()
    shutil.rmtree(ARGUMENTS.work, ignore_errors=True)
    begin = time.perf_counter()
    make_checkpoint(ARGUMENTS.work / "model")
    print(f"{report['gpu']}, {report['cores']} cores; a checkpoint in {time.perf_counter() - begin:.0f} s", flush=True)
    pinned = Pinned()
    for name, flags in LAYOUTS.items():
        measure(name, flags, pinned)
    loader.release()
    for method in BLOBS:
        mxfp4_repack.convert(ARGUMENTS.work / "model", ARGUMENTS.work / method, compress=method, **BLOB)
        check_damage(method)
    with contextlib.ExitStack() as opened:
        blobs = {method: opened.enter_context(mxfp4_repack.open_blob(ARGUMENTS.work / method)) for method in BLOBS}
        blobs["made"] = opened.enter_context(mxfp4_repack.open_checkpoint(ARGUMENTS.work / "model", **BLOB))
        layers = {what: opened.enter_context(blob.layer(0)) for what, blob in blobs.items()}
        for what, layer in layers.items():
            check(what, layer, layers["none"])
    loader.release()
    del pinned
    torch.cuda.empty_cache()
    with mxfp4_repack.open_checkpoint(ARGUMENTS.work / "model", rank=0, **BLOB) as made:
        manifest = made.manifest
    (ARGUMENTS.work / "conversion.json").write_text(json.dumps(manifest))
    fresh_process("blob, plain", ARGUMENTS.work / "none")
    fresh_process("blob, zstd", ARGUMENTS.work / "zstd")
    fresh_process("no blob", ARGUMENTS.work / "model", "--conversion", ARGUMENTS.work / "conversion.json")
    if ARGUMENTS.report:
        ARGUMENTS.report.write_text(json.dumps(report, indent=2) + "\n")
    shutil.rmtree(ARGUMENTS.work, ignore_errors=True)
    return 1 if report["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
