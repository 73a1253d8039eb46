#!/usr/bin/env python3
"""Measure what all GPUs of a node load at once, one process a rank, as an engine starts them.

    node_check.py --build build/release [--gpus N] [--work /dev/shm/node-check] [--layers 3] [--rounds 3]
                  [--report FILE]

Draws a gpt-oss checkpoint with the sizes of gpt-oss-120b (three layers, 5.3 GB) into --work, which should lie
in memory, and converts it for TRITON on sm90, tensor parallel and expert parallel, plain and compressed. Then
each rank's process loads its own part, all of them together:

  pinned    copies of 1 GiB from pinned memory, all GPUs together: the ceiling
  memory    copies from memory to memory by all processes' threads, bytes read and written: the host's limit
  blob      plain, default; made: from the checkpoint, TP and EP; first: the first load of each process

Prints a line for each: GB/s of the node (bytes of all ranks over the time from the first begin to the last
end), and its share of the pinned copies. The first load counts opening, pinning and allocation. Medians of
--rounds. Needs two GPUs or more, torch and numpy; with --gpus 1 it measures one. Takes about 2 minutes.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts" / "python"), str(ROOT / "tests" / "cli")]

EXPERTS, HIDDEN, INTER = 128, 2880, 2880
FLAGS = {"backend": "TRITON", "arch": "sm90"}
GROUPS = {"TP": {}, "EP": {"enable_expert_parallel": True}}
COPY_BYTES = 1 << 30


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("--gpus", type=int)
    parser.add_argument("--work", type=Path, default=Path("/dev/shm/node-check"))
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--report", type=Path)
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    found = parser.parse_args()
    os.environ["MXFP4_REPACK_LIBRARY"] = str((found.build / "libmxfp4_repack.so.0").resolve())
    os.environ["MXFP4_REPACK"] = str((found.build / "mxfp4-repack").resolve())
    return found


# One rank: it does what a line of its input says, and answers with a line of JSON -----------------------

class Rank:
    def __init__(self, arguments):
        import torch

        import mxfp4_repack
        from mxfp4_repack import loader
        self.torch, self.package, self.loader = torch, mxfp4_repack, loader
        self.arguments = arguments
        torch.cuda.set_device(arguments.rank)
        self.threads = loader.readers_of_rank(arguments.gpus)
        self.opened = {}

    def prepare(self, what):
        """Whatever of `what` is not to be timed."""
        if what == "pinned":
            self.host = self.torch.empty(COPY_BYTES, dtype=self.torch.uint8, pin_memory=True)
            self.device = self.torch.empty(COPY_BYTES, dtype=self.torch.uint8, device="cuda")
            self.device.copy_(self.host)
        elif what == "memory":
            import numpy as np
            self.blocks = [(np.ones(256 << 20, "u1"), np.ones(256 << 20, "u1")) for _ in range(self.threads)]
        elif what == "end":
            self.host = self.device = self.blocks = None
            self.torch.cuda.empty_cache()
        self.torch.cuda.synchronize()

    def open(self, what):
        group, source = what.split(" ")[:2]
        if source == "made":
            return self.package.open_checkpoint(self.arguments.work / "model", rank=self.arguments.rank,
                                                tp_size=self.arguments.gpus, **FLAGS, **GROUPS[group])
        return self.package.open_blob(self.arguments.work / f"{group}-{source}", rank=self.arguments.rank)

    def load(self, what, first):
        """Bytes. `first`: opening, pinning and allocation are part of it."""
        if first or what not in self.opened:
            blob = self.open(what)
            self.opened[what] = [blob.layer(prefix) for prefix in blob.layers]
        by = self.loader.Loader("cuda", threads=self.threads) if first else self.by
        size, kept = 0, []
        for layer in self.opened[what]:
            kept.append(by.load(layer))
            size += sum(layer.info(name).nbytes for name in layer.tensors)
        self.torch.cuda.synchronize()
        self.by = by
        return size

    def run(self, what, first):
        if what == "pinned":
            self.device.copy_(self.host, non_blocking=True)
            self.torch.cuda.synchronize()
            return COPY_BYTES
        if what == "memory":
            import numpy as np
            threads = [threading.Thread(target=np.copyto, args=pair) for pair in self.blocks]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return 2 * sum(block.nbytes for block, _ in self.blocks)
        return self.load(what, first)

    def serve(self):
        print(json.dumps({"ready": self.torch.cuda.get_device_name()}), flush=True)
        for line in sys.stdin:
            order = json.loads(line)
            if order["do"] == "prepare":
                self.prepare(order["what"])
                answer = {}
            else:
                while time.time() < order["at"]:  # all begin together
                    pass
                begin = time.time()
                size = self.run(order["what"], order["first"])
                answer = {"begin": begin, "end": time.time(), "bytes": size}
            print(json.dumps(answer), flush=True)


# All of them --------------------------------------------------------------------------------------------

class Node:
    def __init__(self, arguments):
        self.arguments = arguments
        self.ranks = [subprocess.Popen(
            [sys.executable, __file__, "--build", arguments.build, "--gpus", str(arguments.gpus), "--work", arguments.work,
             "--rank", str(rank)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=dict(os.environ, LOCAL_WORLD_SIZE=str(arguments.gpus))) for rank in range(arguments.gpus)]
        self.name = self.answers()[0]["ready"]

    def answers(self):
        found = [rank.stdout.readline() for rank in self.ranks]
        if not all(found):
            sys.exit("a rank's process ended")
        return [json.loads(line) for line in found]

    def order(self, **order):
        for rank in self.ranks:
            print(json.dumps(order), file=rank.stdin, flush=True)
        return self.answers()

    def prepare(self, what):
        self.order(do="prepare", what=what)

    def rate(self, what, first=False):
        found = self.order(do="run", what=what, first=first, at=time.time() + 0.05)
        taken = max(one["end"] for one in found) - min(one["begin"] for one in found)
        return sum(one["bytes"] for one in found) / taken / 1e9

    def close(self):
        for rank in self.ranks:
            rank.stdin.close()
            rank.wait()


def make_inputs(arguments):
    import numpy as np

    import layer_files
    import mxfp4_repack
    shutil.rmtree(arguments.work, ignore_errors=True)
    model = arguments.work / "model"
    model.mkdir(parents=True)
    tensors = layer_files.gpt_oss_layer(0, EXPERTS, HIDDEN, INTER, np.random.default_rng(1))
    for number in range(arguments.layers):
        named = {name.replace("model.layers.0.", f"model.layers.{number}."): tensor for name, tensor in tensors.items()}
        layer_files.write(model / f"model-{number:05}.safetensors", named)
    (model / "config.json").write_text(json.dumps(layer_files.gpt_oss_config(arguments.layers, EXPERTS, HIDDEN, INTER)))
    for group, flags in GROUPS.items():
        for method in ("none", "zstd"):
            mxfp4_repack.convert(model, arguments.work / f"{group}-{method}", compress=method, tp_size=arguments.gpus, **FLAGS, **flags)


def main():
    arguments = parse_arguments()
    if arguments.rank is not None:
        return Rank(arguments).serve()
    import torch
    arguments.gpus = arguments.gpus or torch.cuda.device_count()
    if torch.cuda.device_count() < arguments.gpus or arguments.gpus < 1:
        sys.exit(f"needs {arguments.gpus} GPUs, has {torch.cuda.device_count()}")
    make_inputs(arguments)
    rows = []
    for what in [f"{group} {source}" for group in GROUPS for source in ("none", "zstd", "made")]:
        node = Node(arguments)  # fresh processes: each has its first load
        node.prepare("pinned")
        pinned = statistics.median(node.rate("pinned") for _ in range(arguments.rounds))
        node.prepare("end")
        first = node.rate(what, first=True)
        later = statistics.median(node.rate(what) for _ in range(arguments.rounds))
        if not rows:
            node.prepare("memory")
            memory = statistics.median(node.rate("memory") for _ in range(arguments.rounds))
            print(f"{arguments.gpus} x {node.name}, {len(os.sched_getaffinity(0))} CPUs; memory {memory:.0f} GB/s", flush=True)
            rows.append({"what": "memory", "rate": memory})
        node.close()
        rows.append({"what": what, "first": first, "later": later, "pinned": pinned})
        print(f"{what:8} first {first:6.1f} GB/s {first / pinned:5.2f}   later {later:6.1f} GB/s {later / pinned:5.2f} of {pinned:.1f}",
              flush=True)
    if arguments.report:
        arguments.report.write_text(json.dumps({"gpus": arguments.gpus, "rows": rows}, indent=2) + "\n")
    shutil.rmtree(arguments.work, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
