#!/usr/bin/env python3
"""Compare the loader with others that bring the same bytes to a GPU, each set as it is fastest here.

    peers.py --plain BLOB [--default BLOB] [--rounds 5] [--loads 3] [--cold] [--report FILE]

BLOB is what `convert` wrote without and with compression from the same checkpoint. Every load is of all
layers, none kept. Timed: opening the files until all tensors are in GPU memory and the GPU is synchronized,
the peer's buffers closed. Ways:

  plain, default             Layer.to_device() of this project, every tensor verified
  safetensors                safe_open(file, device), get_tensor
  vLLM's iterator            as its default loader: a tensor after another on the CPU, then copy_() into the parameter
  runai                      runai-model-streamer, buffered reads
  fastsafetensors            without GPUDirect Storage, all files in one call, buffered reads, 64 MiB, 12 threads, one
                             loader for all loads
  instanttensor              all files in one call, MMAP, its buffer cached
  runai, as installed; fastsafetensors, as installed; instanttensor, as installed
                             the same without settings: these read past the page cache where a file lies on a disk,
                             a default for cold starts
  pinned                     one copy of 1 GiB from pinned memory: what the bus gives

Each way runs in a process of its own, one at a time, in another order each round, since settings are
variables of the process and a first load pays for pinned memory, rings and threads. The process makes the CUDA
context, then loads --loads times; GPU memory is given back before each load. Prints the medians of the first loads
and of the later ones in GB/s with the lowest and highest, and their share of a pinned copy in the same round.

--cold drops the files from the page cache before each process, which loads once with defaults, and adds:

  plain, direct; default, direct    past the page cache: open_blob(direct=True)
  disk                              the plain files read past the page cache, to nowhere: the disk's own rate

Shares are then of the disk. Needs a GPU and torch; what is not installed is named and left out.
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
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GIB = 1 << 30


# Ways: each makes a function that loads everything and returns what has to stay alive until the end.

def plain_files(arguments):
    return sorted(glob.glob(os.path.join(arguments.plain, "*.safetensors")))


def ours(arguments, which, direct=False):
    import mxfp4_repack

    def load():
        with mxfp4_repack.open_blob(getattr(arguments, which), direct=direct) as blob:
            layers = [blob.layer(prefix) for prefix in blob.layers]
            tensors = [layer.to_device("cuda") for layer in layers]
            for layer in layers:
                layer.close()
            return tensors
    return load


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


def pinned(_):
    import torch
    host = torch.empty(GIB, dtype=torch.uint8, pin_memory=True)
    host.random_(0, 255)
    device = torch.empty_like(host, device="cuda", pin_memory=False)

    def load():
        device.copy_(host, non_blocking=True)
    load.bytes = GIB
    return load


def disk(arguments):
    """Reads files as fast as the disk gives them."""
    part, threads = 8 << 20, 16

    def read(part_of):
        path, offset = part_of
        file = os.open(path, os.O_RDONLY | os.O_DIRECT)
        try:
            with mmap.mmap(-1, part) as memory:
                os.preadv(file, [memory], offset)
        finally:
            os.close(file)

    def load():
        parts = [(path, offset) for path in plain_files(arguments) for offset in range(0, os.path.getsize(path), part)]
        with concurrent.futures.ThreadPoolExecutor(threads) as pool:
            list(pool.map(read, parts))
    return load


def ways_of(arguments):
    """{name: (what makes the function, variables of its process)}"""
    ways = {}
    for which in ("plain", "default"):
        if getattr(arguments, which):
            ways[which] = lambda a, which=which: ours(a, which), {}
            if arguments.cold:
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
    return ways | ({"disk": (disk, {})} if arguments.cold else {"pinned": (pinned, {})})


# One process ------------------------------------------------------------------------------------------

def bytes_of(arguments):
    import mxfp4_repack
    with mxfp4_repack.open_blob(arguments.plain) as blob:
        layers = [blob.layer(prefix) for prefix in blob.layers]
        return sum(layer.info(tensor).nbytes for layer in layers for tensor in layer.tensors)


def run_one(arguments):
    """Prints the GB/s of each load as JSON, or why the way cannot be measured."""
    sys.path.insert(0, str(ROOT / "scripts" / "python"))
    import torch
    try:
        load = ways_of(arguments)[arguments.one][0](arguments)
    except ImportError as error:
        print(json.dumps({"absent": str(error)}))
        return
    torch.cuda.init()
    torch.empty(1, device="cuda")
    size = getattr(load, "bytes", None) or bytes_of(arguments)
    rates = []
    for _ in range(arguments.loads):
        torch.cuda.empty_cache()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        kept = load()
        torch.cuda.synchronize()
        rates.append(size / (time.perf_counter() - begin) / 1e9)
        del kept
    print(json.dumps({"rates": rates}))


# All of them ------------------------------------------------------------------------------------------

def drop(directories):
    for path in (path for directory in directories if directory for path in glob.glob(os.path.join(directory, "*"))):
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def measure(arguments):
    """{name: [the rates of one process's loads, ...]}"""
    ways = ways_of(arguments)
    found = {name: [] for name in ways}
    command = [sys.executable, __file__, *sys.argv[1:]]
    for _ in range(arguments.rounds):
        for name in random.sample(list(ways), len(ways)):
            if arguments.cold:
                drop((arguments.plain, arguments.default))
            done = subprocess.run([*command, "--one", name], env=os.environ | ways[name][1], capture_output=True, text=True)
            said = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {"absent": done.stderr.strip()[-300:]}
            if "absent" in said:
                print(f"{name}: not measured: {said['absent']}")
                del ways[name], found[name]
            else:
                found[name].append(said["rates"])
    return found


def words(rates, limits):
    """Median, range and share of `limits`, which are of the same rounds."""
    share = statistics.median(rates) / statistics.median(limits)
    return f"{statistics.median(rates):6.2f} ({min(rates):.2f} to {max(rates):.2f}) {share:.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plain", required=True)
    parser.add_argument("--default")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--loads", type=int, default=3)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--report", type=Path)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.cold:
        arguments.loads = 1
    if arguments.one:
        run_one(arguments)
        return
    found = measure(arguments)
    limits = [max(rates) for rates in found["disk" if arguments.cold else "pinned"]]
    for name, processes in found.items():
        line = f"{name:30} first {words([rates[0] for rates in processes], limits)}"
        later = [rate for rates in processes for rate in rates[1:]]
        print(line + (f"   later {words(later, limits)}" if later else ""))
    if arguments.report:
        arguments.report.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
