#!/usr/bin/env python3
"""Compare the loader with others that bring the same bytes to a GPU, in turns.

    peers.py --plain BLOB [--default BLOB] [--rounds 7] [--cold] [--report FILE]

BLOB is what `convert` wrote without and with compression from the same checkpoint. Each way loads all
layers, one file after another, none kept:

  plain, default      Layer.to_device() of this project
  safetensors         load_file(file, device)
  vLLM's iterator     as its default loader: a tensor after another on the CPU, then copy_() into the parameter
  runai               runai-model-streamer, then copy_() as vLLM does
  fastsafetensors     without GPUDirect Storage
  instanttensor       its own choice of a way

--cold drops the files from the page cache before each load, and adds these:

  plain, direct; default, direct    as plain and default, past the page cache: open_blob(direct=True)
  disk                              the plain files read past the page cache, to nowhere: the disk's own rate

Each round takes them in another order: a disk may be slower after others have read much. GPU memory is given
back between them, so each allocates its own. Prints the median rate of each in GB/s of tensors with the lowest
and highest, its share of a pinned copy in the same round (with --cold: of the disk), and what is not
installed. Needs a GPU and torch.
"""
import argparse
import concurrent.futures
import glob
import json
import mmap
import os
import random
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "python"))

import torch

import mxfp4_repack


def with_safetensors(paths):
    from safetensors.torch import load_file
    for path in paths:
        load_file(path, device="cuda")


def into_parameters(tensors):
    """Copies each tensor into a parameter of its own, as vLLM's weight loaders do."""
    kept = []
    for tensor in tensors:
        parameter = torch.empty_like(tensor, device="cuda")
        parameter.copy_(tensor)
        kept.append(parameter)


def with_iterator(paths):
    from safetensors import safe_open
    for path in paths:
        with safe_open(path, framework="pt") as file:
            into_parameters(file.get_tensor(name) for name in file.keys())


def with_runai(paths):
    from runai_model_streamer import SafetensorsStreamer
    with SafetensorsStreamer() as streamer:
        for path in paths:
            streamer.stream_file(path)
            into_parameters(tensor for _, tensor in streamer.get_tensors())


def with_fastsafetensors(paths):
    from fastsafetensors import SafeTensorsFileLoader
    for path in paths:
        loader = SafeTensorsFileLoader(None, "cuda:0", nogds=True)
        loader.add_filenames({0: [path]})
        buffer = loader.copy_files_to_device()
        for name in list(buffer.key_to_rank_lidx):
            buffer.get_tensor(name)
        buffer.close()
        loader.close()


def with_instanttensor(paths):
    from instanttensor import safe_open
    for path in paths:
        with safe_open(path, framework="pt", device=0) as file:
            kept = list(file.tensors())
        del kept


OTHERS = {"safetensors": with_safetensors, "vLLM's iterator": with_iterator, "runai": with_runai,
          "fastsafetensors": with_fastsafetensors, "instanttensor": with_instanttensor}


def to_device(layers):
    for layer in layers:
        layer.to_device("cuda")


def read_disk(paths):
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

    parts = [(path, offset) for path in paths for offset in range(0, os.path.getsize(path), part)]
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        list(pool.map(read, parts))


def drop(paths):
    for path in paths:
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def ways_of(arguments):
    """{name: (action, the files that it reads)}, and the bytes of all tensors."""
    ways, size = {}, 0
    for direct in (False, True) if arguments.cold else (False,):
        for name, directory in (("plain", arguments.plain), ("default", arguments.default)):
            if directory is None:
                continue
            blob = mxfp4_repack.open_blob(directory, direct=direct)
            layers = [blob.layer(prefix) for prefix in blob.layers]
            size = sum(layer.info(tensor).nbytes for layer in layers for tensor in layer.tensors)
            ways[f"{name}, direct" if direct else name] = (
                lambda layers=layers: to_device(layers), [layer.path for layer in layers])
    paths = sorted(glob.glob(os.path.join(arguments.plain, "*.safetensors")))
    for name, load in OTHERS.items():
        ways[name] = (lambda load=load: load(paths), paths)
    if arguments.cold:
        ways["disk"] = (lambda: read_disk(paths), paths)
    return ways, size


def seconds(action, paths=()):
    torch.cuda.empty_cache()
    drop(paths)
    torch.cuda.synchronize()
    begin = time.perf_counter()
    action()
    torch.cuda.synchronize()
    return time.perf_counter() - begin


def pinned_seconds(size):
    """Of one pinned copy of so many bytes."""
    host = torch.empty(size, dtype=torch.uint8, pin_memory=True)
    host.random_(0, 255)
    device = torch.empty_like(host, device="cuda", pin_memory=False)
    return lambda: seconds(lambda: device.copy_(host, non_blocking=True))


def measure(arguments):
    """{name: rates, a round each}"""
    ways, size = ways_of(arguments)
    pinned = pinned_seconds(min(size, 1 << 30))
    part = min(size, 1 << 30) / size
    rates = {name: [] for name in (*ways, "pinned")}
    for turn in range(arguments.rounds + 1):  # the first does not count
        took = {"pinned": pinned() / part}
        for name in random.sample(list(ways), len(ways)):
            action, paths = ways[name]
            try:
                took[name] = seconds(action, paths if arguments.cold else ())
            except Exception as error:  # a peer that is missing, or cannot, is named and left out
                if name not in OTHERS:
                    raise
                print(f"{name}: not measured: {type(error).__name__}: {error}".split("\n")[0])
                del ways[name], rates[name]
        if turn > 0:
            for name, seconds_taken in took.items():
                rates[name].append(size / seconds_taken / 1e9)
    return rates


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plain", required=True)
    parser.add_argument("--default")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--report", type=Path)
    arguments = parser.parse_args()
    found = measure(arguments)
    limit, words = ("disk", "the disk") if arguments.cold else ("pinned", "a pinned copy")
    for name, rates in found.items():
        share = statistics.median(rate / most for rate, most in zip(rates, found[limit]))
        print(f"{name:16} {statistics.median(rates):6.2f} GB/s ({min(rates):.2f} to {max(rates):.2f}), "
              f"{share:.2f} of {words}")
    if arguments.report:
        arguments.report.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
