#!/usr/bin/env python3
"""Compare the loader with others that bring the same bytes to a GPU, each set as it is fastest here.

    peers.py --plain BLOB [--default BLOB] [--checkpoint DIR] [--ways WAY...] [--rounds 5] [--loads 3] [--cold]
             [--report FILE]

BLOB is what `convert` wrote without and with compression from the checkpoint in DIR. Every load is of all
layers, none kept. Timed: opening the files until all tensors are in GPU memory and the GPU is synchronized,
the peer's buffers closed. Ways:

  plain, default, made       Layer.to_device() of this project, every tensor verified; made: from the checkpoint
  plain, prepared; default, prepared; made, prepared
                             the same after prepare(), as the plug-ins call it while the engine builds its model
  safetensors                safe_open(file, device), get_tensor
  vLLM's iterator            as its default loader: a tensor after another on the CPU, then copy_() into the parameter
  runai                      runai-model-streamer, buffered reads
  fastsafetensors            without GPUDirect Storage, all files in one call, buffered reads, 64 MiB, 12 threads, one
                             loader for all loads
  instanttensor              all files in one call, MMAP, its buffer cached
  runai, as installed; fastsafetensors, as installed; instanttensor, as installed
                             the same without settings: these read past the page cache where a file lies on a disk,
                             a default for cold starts

Each way runs in a process of its own, one at a time, in another order each round, since settings are
variables of the process and a first load pays for pinned memory, rings and threads. The process makes the CUDA
context, then loads --loads times; GPU memory is given back before each load. Prints the medians of the first loads
and of the later ones in GB/s with the lowest and highest, and their share of a copy of 1 GiB from pinned memory in
the same process: what the bus gives. A line for each process comes as it ends.

--cold loads once with defaults, the files dropped from the page cache before, and adds past the page cache:

  plain, direct; default, direct    open_blob(direct=True)

Shares are then of the disk: the same files, read past the page cache to nowhere, in the same process, before the
load in one round and after it in the next. Needs a GPU and torch; what is not installed is named and left out.
"""
import argparse
import concurrent.futures
import glob
import json
import mmap
import os
import random
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GIB = 1 << 30


# Ways: each makes a function that loads everything and returns what has to stay alive until the end.

def plain_files(arguments):
    return sorted(glob.glob(os.path.join(arguments.plain, "*.safetensors")))


def files_of(arguments, name):
    """Those that a way reads."""
    which = name.partition(",")[0]
    directory = {"default": arguments.default, "made": arguments.checkpoint}.get(which, arguments.plain)
    return [path for path in glob.glob(os.path.join(directory, "*")) if not path.endswith(".json")]


def ours(arguments, which, direct=False, prepared=False):
    import mxfp4_repack

    if which == "made":
        with mxfp4_repack.open_blob(arguments.plain) as blob:
            conversion = blob.manifest

    def opened():
        if which == "made":
            return mxfp4_repack.open_checkpoint(arguments.checkpoint, conversion=conversion)
        return mxfp4_repack.open_blob(getattr(arguments, which), direct=direct)

    def load():
        times = [time.perf_counter()]
        with opened() as blob:
            tensors = []
            layers = [blob.layer(prefix) for prefix in blob.layers]
            times.append(time.perf_counter())
            for layer in layers:
                tensors.append(layer.to_device("cuda"))
                times.append(time.perf_counter())
            for layer in layers:
                layer.close()
            load.parts.append([b - a for a, b in zip(times, times[1:])])
            return tensors
    load.parts = []
    load.before = wait_for_loader if prepared else lambda: None
    return load


def wait_for_loader():
    from mxfp4_repack import loader

    loader.prepare("cuda")
    for thread in threading.enumerate():
        if thread.name == "mxfp4-repack-prepare":
            thread.join()


def safetensors(arguments):
    from safetensors import safe_open
    paths = plain_files(arguments)

    def load():
        kept = []
        for path in paths:
            with safe_open(path, framework="pt", device="cuda:0") as file:
                kept += [file.get_tensor(name) for name in file.keys()]
        return kept
    return load


def into_parameters(tensors):
    """Copies each tensor into a parameter of its own, as vLLM's weight loaders do."""
    import torch
    kept = []
    for tensor in tensors:
        parameter = torch.empty_like(tensor, device="cuda")
        parameter.copy_(tensor)
        kept.append(parameter)
    return kept


def vllm_iterator(arguments):
    from safetensors import safe_open
    paths = plain_files(arguments)

    def load():
        kept = []
        for path in paths:
            with safe_open(path, framework="pt") as file:
                kept += into_parameters(file.get_tensor(name) for name in file.keys())
        return kept
    return load


def runai(arguments):
    from runai_model_streamer import SafetensorsStreamer
    paths = plain_files(arguments)

    def load():
        with SafetensorsStreamer() as streamer:
            streamer.stream_files(paths, device="cuda:0")
            return [tensor for _, tensor in streamer.get_tensors()]
    return load


def fastsafetensors(arguments, kept=False, **settings):
    from fastsafetensors import SafeTensorsFileLoader
    paths, made = plain_files(arguments), []

    def load():
        loader = made.pop() if made else SafeTensorsFileLoader(None, "cuda:0", nogds=True, **settings)
        loader.add_filenames({0: paths})
        buffer = loader.copy_files_to_device()
        tensors = [buffer.get_tensor(name) for name in list(buffer.key_to_rank_lidx)]
        buffer.close()
        if kept:
            loader.reset()
            made.append(loader)
        else:
            loader.close()
        return tensors
    return load


def instanttensor(arguments, backend=None):
    from instanttensor import Backend, safe_open
    paths = plain_files(arguments)
    settings = {"backend": Backend[backend]} if backend else {}

    def load():
        with safe_open(paths, framework="pt", device=0, copy=True, **settings) as file:
            return [tensor for _, tensor in file.tensors()]
    return load


def pinned_rate():
    """GB/s of a copy from pinned memory, the median of 3 after one that does not count."""
    import torch
    host = torch.empty(GIB, dtype=torch.uint8, pin_memory=True)
    device = torch.empty_like(host, device="cuda", pin_memory=False)
    rates = []
    for _ in range(4):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        device.copy_(host, non_blocking=True)
        torch.cuda.synchronize()
        rates.append(GIB / (time.perf_counter() - begin) / 1e9)
    return statistics.median(rates[1:])


def disk_seconds(paths):
    """How long the disk takes for whole files, read past the page cache by 16 threads, 8 MiB each."""
    part, threads = 8 << 20, 16

    def read(part_of):
        path, offset = part_of
        file = os.open(path, os.O_RDONLY | os.O_DIRECT)
        try:
            with mmap.mmap(-1, part) as memory:
                os.preadv(file, [memory], offset)
        finally:
            os.close(file)

    parts = [(path, offset) for path in paths for offset in range(0, os.path.getsize(path), part)]
    begin = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        list(pool.map(read, parts))
    return time.perf_counter() - begin


def ways_of(arguments):
    """{name: (what makes the function, variables of its process)}"""
    ways = {}
    for which in ("plain", "default", "made"):
        if arguments.checkpoint if which == "made" else getattr(arguments, which):
            ways[which] = lambda a, which=which: ours(a, which), {}
            if not arguments.cold:
                ways[f"{which}, prepared"] = lambda a, which=which: ours(a, which, prepared=True), {}
            elif which != "made":
                ways[f"{which}, direct"] = lambda a, which=which: ours(a, which, direct=True), {}
    quiet = {"RUNAI_STREAMER_LOG_LEVEL": "ERROR"}
    ways |= {"safetensors": (safetensors, {}), "vLLM's iterator": (vllm_iterator, {})}
    if not arguments.cold:
        ways |= {
            "runai": (runai, quiet | {"RUNAI_STREAMER_FS_STRATEGY": "sync_buffered"}),
            "fastsafetensors": (lambda a: fastsafetensors(a, kept=True, bbuf_size_kb=64 << 10, max_threads=12),
                                {"FASTSAFETENSORS_ODIRECT": "0"}),
            "instanttensor": (lambda a: instanttensor(a, "MMAP"), {"INSTANTTENSOR_CACHE_BUFFER": "1"})}
    ways |= {"runai, as installed": (runai, quiet), "fastsafetensors, as installed": (fastsafetensors, {}),
             "instanttensor, as installed": (instanttensor, {})}
    return {name: way for name, way in ways.items() if arguments.ways is None or name in arguments.ways}


# One process ------------------------------------------------------------------------------------------

def bytes_of(arguments):
    import mxfp4_repack
    with mxfp4_repack.open_blob(arguments.plain) as blob:
        layers = [blob.layer(prefix) for prefix in blob.layers]
        return sum(layer.info(tensor).nbytes for layer in layers for tensor in layer.tensors)


def run_one(arguments):
    """Prints as JSON the GB/s of each load and of what limits them, or why the way cannot be measured."""
    sys.path.insert(0, str(ROOT / "scripts" / "python"))
    import torch
    try:
        load = ways_of(arguments)[arguments.one][0](arguments)
    except ImportError as error:
        print(json.dumps({"absent": str(error)}))
        return
    torch.cuda.init()
    torch.empty(1, device="cuda")
    size, files = bytes_of(arguments), files_of(arguments, arguments.one)
    getattr(load, "before", lambda: None)()
    disk = disk_seconds(files) if arguments.cold and arguments.disk_first else None
    rates = []
    for _ in range(arguments.loads):
        if arguments.cold:
            drop(files)
        torch.cuda.empty_cache()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        kept = load()
        torch.cuda.synchronize()
        rates.append(size / (time.perf_counter() - begin) / 1e9)
        del kept
    if arguments.cold:
        drop(files)
        disk = disk or disk_seconds(files)
    limit = size / disk / 1e9 if disk else pinned_rate()
    print(json.dumps({"rates": rates, "limit": limit, "parts": getattr(load, "parts", [])}))


def drop(files):
    """Files out of the page cache."""
    for path in files:
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


# All of them ------------------------------------------------------------------------------------------

def measure(arguments):
    """{name: [what one process found, ...]}"""
    ways = ways_of(arguments)
    found = {name: [] for name in ways}
    command = [sys.executable, __file__, *sys.argv[1:]]
    for number in range(arguments.rounds):
        for name in random.sample(list(ways), len(ways)):
            first = ["--disk-first"] if number % 2 == 0 else []
            done = subprocess.run([*command, "--one", name, *first], env=os.environ | ways[name][1], capture_output=True, text=True)
            said = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {"absent": done.stderr.strip()[-300:]}
            if "absent" in said:
                print(f"{name}: not measured: {said['absent']}", flush=True)
                del ways[name], found[name]
            else:
                found[name].append(said)
                print(f"     {number}, {name}: {', '.join(f'{rate:.2f}' for rate in said['rates'])} of {said['limit']:.2f}", flush=True)
    return found


def words(samples):
    """Median and range of (rate, limit) pairs, and of the shares of the limits."""
    rates, shares = [rate for rate, _ in samples], [rate / limit for rate, limit in samples]
    return (f"{statistics.median(rates):6.2f} ({min(rates):.2f} to {max(rates):.2f}) {statistics.median(shares):.3f} "
            f"({min(shares):.3f} to {max(shares):.3f})")


def in_cache(files):
    """Reads files to nowhere: they were just written, or dropped."""
    for path in files:
        with open(path, "rb", buffering=0) as file:
            while file.read(64 << 20):
                pass


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plain", required=True)
    parser.add_argument("--default")
    parser.add_argument("--checkpoint")
    parser.add_argument("--ways", nargs="+")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--loads", type=int, default=3)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--report", type=Path)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--disk-first", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.cold:
        arguments.loads = 1
    if arguments.one:
        run_one(arguments)
        return
    if not arguments.cold:
        in_cache(sorted({file for name in ways_of(arguments) for file in files_of(arguments, name)}))
    found = measure(arguments)
    for name, processes in found.items():
        line = f"{name:30} first {words([(one['rates'][0], one['limit']) for one in processes])}"
        later = [(rate, one["limit"]) for one in processes for rate in one["rates"][1:]]
        limits = [one["limit"] for one in processes]
        print(f"{line}{f'   later {words(later)}' if later else ''}   of {statistics.median(limits):.2f}", flush=True)
    if arguments.report:
        arguments.report.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
