#!/usr/bin/env python3
"""Measure the loader of scripts/python on a GPU, against plain pinned copies, and check its bytes.

    loader_check.py --program MXFP4_REPACK [--work DIR] [--experts 128 --hidden 2880 --inter 2880]
                    [--layers 2] [--reuse] [--brief | --sweep] [--report FILE]

Makes a gpt-oss checkpoint of random bytes in DIR, packs it for TRITON on sm90, plain and compressed,
and loads it from the page cache. Prints one line for each fact, `ok` or `FAIL` where there is a limit:

  bytes     what to_device() gives equals what numpy reads: shape, strides, dtype, every byte;
  plain     rate of a pinned copy as large, the ceiling; of an ordinary .cuda(); of reading alone;
  loader    rate of to_device(), uncompressed: at least 0.8 of the pinned copy; compressed;
  decoding  rate of threads into the ring, by number of threads: what limits the loader;
  damage    a turned bit is found, in tensors of either kind of blob, wherever it lies;
  memory    GPU memory taken beside the tensors, by the allocator and by the driver: under 64 MiB.

--reuse takes the blobs that an earlier run left in DIR. --brief leaves out `decoding`; --sweep also
times numbers of threads and ring sizes. --report writes all numbers as JSON. Rates are medians of 5,
in GB/s of decoded bytes. Needs a GPU, torch, numpy; exits 1 if a limit was missed.
"""
import argparse
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

import numpy as np
import torch

import layer_files
import mxfp4_repack
from mxfp4_repack import loader

SHARE_OF_PINNED = 0.8
BESIDE_LIMIT = 64 << 20
REPEATS = 5
TURNED_BITS = 40
METHODS = {"uncompressed": "none", "compressed": "zstd"}

report = {"numbers": {}, "failures": []}


def say(what, text, good=None):
    if good is False:
        report["failures"].append(what)
    print(f"{'    ' if good is None else 'ok  ' if good else 'FAIL'} {what}: {text}", flush=True)


def rate(what, size, action):
    """GB/s of `action`, the median after one run that does not count."""
    times = []
    for _ in range(REPEATS + 1):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        action()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    rates = [size / seconds / 1e9 for seconds in times[1:]]
    report["numbers"][what] = statistics.median(rates)
    say(what, f"{statistics.median(rates):.2f} GB/s ({min(rates):.2f} to {max(rates):.2f})")
    return statistics.median(rates)


def run(*command):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}")
    return done.stdout


def make_checkpoint(directory, arguments):
    """As layer_files.make_gpt_oss, one file a layer, so that memory holds one."""
    directory.mkdir(parents=True)
    random = np.random.default_rng(1)
    for layer in range(arguments.layers):
        layer_files.write(directory / f"model-{layer:05}.safetensors", layer_files.gpt_oss_layer(
            layer, arguments.experts, arguments.hidden, arguments.inter, random))
    (directory / "config.json").write_text(json.dumps(layer_files.gpt_oss_config(
        arguments.layers, arguments.experts, arguments.hidden, arguments.inter)))


def pack(program, source, out, *flags):
    run(program, "convert", source, "-o", out, "--backend", "TRITON", "--arch", "sm90", "-q", *flags)
    return mxfp4_repack.open_blob(out)


def make_layers(arguments, reuse):
    """{how compressed: its layers}, files in the page cache."""
    layers = {}
    if not reuse:
        begin = time.perf_counter()
        make_checkpoint(arguments.work / "model", arguments)
        say("made", f"a checkpoint in {time.perf_counter() - begin:.0f} s")
    for what, method in METHODS.items():
        begin = time.perf_counter()
        blob = mxfp4_repack.open_blob(arguments.work / what) if reuse else pack(
            arguments.program, arguments.work / "model", arguments.work / what,
            "--compress", method)
        layers[what] = [blob.layer(prefix) for prefix in blob.layers]
        for layer in layers[what]:
            layer.check_tensors()  # also brings the file into the page cache
        say("opened" if reuse else "made", f"{what} in {time.perf_counter() - begin:.0f} s")
    return layers


def check_bytes(what, layer):
    tensors = layer.to_device("cuda")
    wrong = []
    for name, tensor in tensors.items():
        info, want = layer.info(name), layer.numpy(name, stored=True)
        flat = torch.as_strided(tensor, (info.nbytes // tensor.element_size(),), (1,))
        same = torch.equal(flat.view(torch.uint8),
                           torch.from_numpy(want.reshape(-1).view("u1")).cuda())
        if not same or tuple(tensor.shape) != info.shape or tensor.stride() != info.strides:
            wrong.append(name)
    say(f"bytes, {what}", f"{len(tensors)} tensors, wrong: {wrong or 'none'}", not wrong)


def check_memory(what, layer):
    """Memory beside the tensors while they are loaded, with a ring that exists already."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    free, before = torch.cuda.mem_get_info()[0], torch.cuda.memory_reserved()
    tensors = layer.to_device("cuda")
    size = sum(layer.info(name).nbytes for name in tensors)
    allocated = torch.cuda.max_memory_allocated() - size
    reserved = torch.cuda.max_memory_reserved() - before - size
    driver = free - torch.cuda.mem_get_info()[0] - size
    beside = max(allocated, reserved, driver)
    report["numbers"][f"beside the tensors, {what}, bytes"] = beside
    say(f"memory, {what}", f"{size / 1e6:.0f} MB of tensors; beside them allocated {allocated / 2**20:.1f}, "
        f"reserved {reserved / 2**20:.1f}, by the driver {driver / 2**20:.1f} MiB", beside < BESIDE_LIMIT)


def check_damage(arguments):
    """Bits of small blobs, turned after the blob was opened."""
    base, random = arguments.work / "damage", np.random.default_rng(2)
    shutil.rmtree(base, ignore_errors=True)
    layer_files.make_gpt_oss(str(base / "model"), 1, 5, 320, 352)
    for what, method in METHODS.items():
        blob = pack(arguments.program, base / "model", base / what, "--compress", method)
        missed = []
        for _ in range(TURNED_BITS):
            with blob.layer(blob.layers[0]) as layer:
                size = os.path.getsize(layer.path)
                at, bit = int(random.integers(size // 4, size * 3 // 4)), 1 << int(random.integers(8))
                turn(layer.path, at, bit)
                try:
                    layer.to_device("cuda")
                    missed.append(at)
                except mxfp4_repack.BlobError:
                    pass
                turn(layer.path, at, bit)
        say(f"damage, {what}", f"{TURNED_BITS} bits, not found: bytes {missed or 'none'}", not missed)


def turn(path, at, bit):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ bit]))


def load_all(loader, layers):
    """One layer after another, none kept: tensors of one layer's size are on the GPU."""
    for layer in layers:
        loader.load(layer)


def read_all(threads, layers):
    """What the loader's threads do, without the copies."""
    ring = np.empty(loader.DEFAULT_RING_BYTES, "u1")
    for layer in layers:
        stream, held = layer.stream(layer.tensors, ring, ring.size // loader.RUNS_IN_RING, threads), 0
        for _ in iter(stream.next, None):
            held += 1
            if held > loader.RUNS_COPYING:
                stream.give_back()
                held -= 1
        stream.close()


def measure(arguments, plain, packed, size):
    os.sync()  # files just written are still on their way to the disk
    largest = max(plain[0].tensors, key=lambda name: plain[0].info(name).nbytes)
    host = torch.empty(plain[0].info(largest).nbytes, dtype=torch.uint8, pin_memory=True)
    host.random_(0, 255)
    device = torch.empty_like(host, device="cuda", pin_memory=False)
    pinned = rate("plain: pinned copy", host.numel(), lambda: device.copy_(host, non_blocking=True))
    pageable = plain[0].numpy(largest, stored=True).reshape(-1).view("u1")
    rate("plain: pageable copy", host.numel(), lambda: device.copy_(torch.from_numpy(pageable)))
    del host, device, pageable

    usual = loader.Loader("cuda")
    say("loader", f"{usual.threads} threads, a ring of {usual.ring_bytes >> 20} MiB, "
                  f"{'by the library alone' if usual.direct else 'by the calling thread'}")
    got = rate("loader: uncompressed", size, lambda: load_all(usual, plain))
    say("loader: share of the pinned copy", f"{got / pinned:.2f}, at least {SHARE_OF_PINNED}",
        got >= SHARE_OF_PINNED * pinned)
    coded = rate("loader: compressed", size, lambda: load_all(usual, packed))
    stored = sum(os.path.getsize(layer.path) for layer in packed)
    say("loader: compressed", f"{stored / size:.3f} of the bytes, {coded / got:.2f} of the rate")
    usual.close()
    if not arguments.brief:
        measure_parts(arguments, plain, packed, size)


def measure_parts(arguments, plain, packed, size):
    cores = len(os.sched_getaffinity(0))
    for threads in [count for count in (1, 2, 4, 8, 16, 32) if count <= cores]:
        for what, layers in (("reading", plain), ("decoding", packed)):
            rate(f"{what}, {threads} threads", size, lambda: read_all(threads, layers))
    if arguments.sweep:
        for threads in [count for count in (4, 6, 8, 10, 12, 14, 16) if count <= cores]:
            for ring in (32, 64, 128):
                tried = loader.Loader("cuda", threads=threads, ring_bytes=ring << 20)
                for what, layers in (("uncompressed", plain), ("compressed", packed)):
                    rate(f"sweep: {what}, {threads} threads, {ring} MiB", size,
                         lambda: load_all(tried, layers))
                tried.close()


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, type=Path)
    parser.add_argument("--work", type=Path, default=Path("/tmp/loader-check"))
    parser.add_argument("--experts", type=int, default=128)
    parser.add_argument("--hidden", type=int, default=2880)
    parser.add_argument("--inter", type=int, default=2880)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--reuse", action="store_true")
    parser.add_argument("--brief", action="store_true")
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("--report", type=Path)
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    arguments.program = arguments.program.resolve()
    if not torch.cuda.is_available():
        sys.exit("needs a GPU")
    reuse = arguments.reuse and all(
        (arguments.work / what / mxfp4_repack.MANIFEST_NAME).exists() for what in METHODS)
    if not reuse:
        shutil.rmtree(arguments.work, ignore_errors=True)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, "
          f"{len(os.sched_getaffinity(0))} cores", flush=True)
    layers = make_layers(arguments, reuse)
    size = sum(layer.info(name).nbytes for layer in layers["uncompressed"] for name in layer.tensors)
    for what in layers:
        check_bytes(what, layers[what][0])
        check_memory(what, layers[what][0])
    check_damage(arguments)
    loader.release()
    measure(arguments, layers["uncompressed"], layers["compressed"], size)
    if arguments.report:
        arguments.report.write_text(json.dumps(report, indent=2) + "\n")
    print(f"{len(report['failures'])} failed", *report["failures"], sep="\n  ")
    sys.exit(1 if report["failures"] else 0)


if __name__ == "__main__":
    main()
