#!/usr/bin/env python3
"""The whole load of a model, vLLM's own ways beside blobs: time and its parts, peak memory, warm and cold.

    whole_load.py --program MXFP4_REPACK --revision REVISION [--ranks 2] [--rounds 3] [--cold 1]
                  [--ways "default blob" "fastsafetensors" ...] [--deployment "--arch sm90 --moe-backend triton"]
                  [--layers 8 --experts 128 --hidden 2880 --inter 2880] [--work DIR] [--prepare] [--alone 2]
                  [--without-kernels] [--arguments JSON] [--report FILE]

vLLM is the one that this interpreter imports, with the plug-in as pip installs it. Makes a gpt-oss checkpoint
of random weights in DIR, gpt-oss-120b's shapes by default (16 GB in 8 layers), and the blobs of the ways, unless
they are there; --prepare stops then. One process for each rank, on a GPU of its own, calls vLLM's
get_model() for each way in turn: one round that does not count, then --rounds from the page cache, then --cold
with the files dropped from it before each load. All ranks begin together; a load takes as long as the slowest.
With --alone each way has processes of its own, so often as that says, in another order each time: their first loads, which
are what a start that serves does, count by themselves.

Printed for each way, as medians with the span of the rounds: seconds; its share of vLLM's own in the
same round; the peak of GPU memory of each rank, and as a share of vLLM's own and of the weights alone
(what is held in the end); by how much the host's memory grew at most, anonymous and all; and the parts of
the time, of the slowest rank:

  next      vLLM's iterator over the files' tensors gives one: reading, where the way reads there
  copy      the rest of load_weights(): copies to the GPU; of mapped files reading too, page by page
  convert   process_weights_after_loading() without what the blob takes in it: the repack
  blob      tensors of the blob go to the GPU, of that `wait` for readers, the rest for copies
  rest      everything else: the model's construction, comparison of facts, waiting

--ways names what is timed beside vLLM's own. "default blob" and "plain blob" are the program's, "no blob" makes the weights from the checkpoint; "threads",
"prefetch" and "eager" are settings of vLLM's default loader; others are load formats, whose packages must be
installed, and which read from the page cache here (PEERS). A way that fails is named and left out. Exits 1 if layers came from no source, or an aim is missed: of
vLLM's own time from the page cache a blob 0.13, no blob 0.20, on more GPUs than one 0.15 and 0.22; a peak of
1.01 of the weights.
"""
import argparse
import collections
import functools
import gc
import importlib
import json
import os
import pathlib
import random
import re
import shlex
import statistics
import subprocess
import sys
import threading
import time
import traceback

import starts
from starts import BLOBS, NO_BLOB, report

OWN = "vLLM's own"
OURS = (NO_BLOB, *BLOBS)
AIMS = ((0.13, 0.15), (0.20, 0.22))  # share of vLLM's own time, on one GPU and on more: with a blob, without
PEAK_AIM = 1.01
SETTINGS = {"threads": {"model_loader_extra_config": {"enable_multithread_load": True, "num_threads": 8}},
            "prefetch": {"safetensors_load_strategy": "prefetch"}, "eager": {"safetensors_load_strategy": "eager"}}
ENGINE = {"skip_tokenizer_init": True, "max_model_len": 256, "dtype": "bfloat16", "moe_backend": "triton", "enforce_eager": True,
          "attention_backend": "TRITON_ATTN", "disable_custom_all_reduce": True}
# With these, load formats of others read files in the page cache from there.
PEERS = {"INSTANTTENSOR_BACKEND": "MMAP", "INSTANTTENSOR_CACHE_BUFFER": "1", "FASTSAFETENSORS_ODIRECT": "0",
         "RUNAI_STREAMER_FS_STRATEGY": "sync_buffered"}
LOADER = "vllm.model_executor.model_loader"


# One rank ---------------------------------------------------------------------------------------------

class Parts:
    """Seconds spent in functions of vLLM and of the plug-in, which are wrapped for that."""

    def __init__(self, synchronize):
        self.seconds, self._synchronize, self._reading = collections.Counter(), synchronize, False

    def time(self, owner, name, part):
        """Its seconds; while an iterator is asked for its next tensor, those of the part `others`."""
        original = getattr(owner, name)

        @functools.wraps(original)
        def timed(*args, **kwargs):
            begin = time.perf_counter()
            try:
                return original(*args, **kwargs)
            finally:
                self._synchronize()
                self.seconds["others" if self._reading else part] += time.perf_counter() - begin

        setattr(owner, name, timed)

    def time_iterator(self, owner, name, part):
        original = getattr(owner, name)

        @functools.wraps(original)
        def timed(*args, **kwargs):
            items = iter(original(*args, **kwargs))
            while True:
                begin, self._reading = time.perf_counter(), True
                item = next(items, None)
                self.seconds[part] += time.perf_counter() - begin
                self._reading = False
                if item is None:
                    return
                yield item

        setattr(owner, name, timed)

    def install(self):
        default = importlib.import_module(f"{LOADER}.default_loader").DefaultModelLoader
        runai = importlib.import_module(f"{LOADER}.runai_streamer_loader").RunaiModelStreamerLoader
        for loader in (default, runai):
            self.time_iterator(loader, "_get_weights_iterator", "next")
            self.time(loader, "load_weights", "load_weights")
        self.time(importlib.import_module(f"{LOADER}.base_loader"), "process_weights_after_loading", "process")
        self.time(importlib.import_module("mxfp4_repack.loader").Loader, "load", "blob")

    def take(self, seconds):
        found, self.seconds = self.seconds, collections.Counter()
        return {"next": found["next"] - found["others"], "others": found["others"], "copy": found["load_weights"] - found["next"],
                "convert": found["process"] - found["blob"], "blob": found["blob"], "rest": seconds - found["load_weights"] - found["process"]}


class Memory(threading.Thread):
    """By how much this process's memory grew at most: anonymous, with the pages of mapped files, and the GPU's by its driver."""

    def __init__(self, free):
        """free: gives the GPU's free bytes."""
        super().__init__(daemon=True)
        self._over, self._anonymous, self._free = threading.Event(), 0, free
        self._had = self._least = free()
        pathlib.Path("/proc/self/clear_refs").write_text("5")
        self._before = {name: self._read(name) for name in ("RssAnon", "VmRSS")}
        self.start()

    @staticmethod
    def _read(name):
        return int(re.search(rf"{name}:\s+(\d+)", pathlib.Path("/proc/self/status").read_text()).group(1)) << 10

    def run(self):
        while not self._over.wait(0.02):
            self._anonymous, self._least = max(self._anonymous, self._read("RssAnon")), min(self._least, self._free())

    def end(self):
        self._over.set()
        self.join()
        return {"anonymous": max(self._anonymous, self._before["RssAnon"]) - self._before["RssAnon"],
                "all": self._read("VmHWM") - self._before["VmRSS"], "gpu": self._had - self._least}


def drop(directory):
    """A directory's files out of the page cache."""
    for path in directory.rglob("*"):
        if path.is_file():
            with open(path, "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class Rank:
    def __init__(self, spec, rank):
        import torch
        from vllm.config import set_current_vllm_config
        from vllm.platforms import current_platform
        from vllm.plugins import load_general_plugins
        from vllm.v1.worker.gpu_worker import init_worker_distributed_environment

        self.spec, self.rank, self.torch = spec, rank, torch
        self.gpu = current_platform.is_cuda()
        load_general_plugins()
        self.device = torch.device("cuda", rank) if self.gpu else torch.device("cpu")
        if self.gpu:
            torch.cuda.set_device(self.device)
        self.configs = {}
        config = self.config(OWN)
        with set_current_vllm_config(config):
            init_worker_distributed_environment(config, rank, f"tcp://127.0.0.1:{spec['port']}", rank, current_platform.dist_backend)
        if self.gpu:  # NCCL's memory and the context's are there before any load
            torch.distributed.all_reduce(torch.ones(1, device=self.device))
        self.log = Lines()
        self.parts = Parts(self.synchronize)
        self.parts.install()

    def synchronize(self):
        if self.gpu:
            self.torch.cuda.synchronize()

    def barrier(self):
        from vllm.distributed.parallel_state import get_world_group

        self.torch.distributed.barrier(group=get_world_group().cpu_group)

    def config(self, way):
        from vllm.engine.arg_utils import EngineArgs

        if way not in self.configs:
            more = {OWN: {}, **SETTINGS, NO_BLOB: starts.load_format(NO_BLOB),
                    **{blob: starts.load_format(directory) for blob, directory in self.spec["blobs"].items()}}.get(way, {"load_format": way})
            arguments = starts.engine_arguments(ENGINE, self.spec)
            self.configs[way] = EngineArgs(**{**arguments, "model": self.spec["model"], "tensor_parallel_size": self.spec["ranks"],
                                              "distributed_executor_backend": "mp" if self.spec["ranks"] > 1 else None, **more}).create_engine_config()
        return self.configs[way]

    def load(self, way, cold):
        """What one load came to; the model is let go again."""
        from vllm.config import set_current_vllm_config
        from vllm.model_executor.model_loader import get_model

        config = self.config(way)
        if cold and self.rank == 0:
            drop(pathlib.Path(self.spec["model"]))
            for directory in self.spec["blobs"].values():
                drop(pathlib.Path(directory))
        self.parts.take(0)
        self.log.lines.clear()
        if self.gpu:
            self.torch.cuda.empty_cache()
            self.torch.cuda.reset_peak_memory_stats()
        before = self.allocated()
        self.barrier()
        host, begin = Memory(lambda: self.torch.cuda.mem_get_info()[0] if self.gpu else 0), time.perf_counter()
        with set_current_vllm_config(config):
            config.compilation_config.static_forward_context.clear()
            model = get_model(vllm_config=config)
        self.synchronize()
        seconds = time.perf_counter() - begin
        found = {"seconds": seconds, "parts": self.parts.take(seconds), "host": host.end(),
                 "peak": self.torch.cuda.max_memory_allocated() - before if self.gpu else 0, "kept": self.allocated() - before,
                 "taken": sum(": taken from " in line or ": made from " in line for line in self.log.lines),
                 "proven": sum("own conversion equals" in line for line in self.log.lines), "lines": self.log.lines[-2:]}
        config.compilation_config.static_forward_context.clear()
        del model
        gc.collect()
        return found

    def allocated(self):
        return self.torch.cuda.memory_allocated() if self.gpu else 0

    def run(self, out):
        broken = set()
        kinds = ["first"] + ["warm"] * self.spec["rounds"] + ["cold"] * self.spec["cold"]
        for number, kind in enumerate(kinds):
            for way in self.spec["ways"]:
                if way in broken or kind == "cold" and way not in (OWN, *OURS) and not self.spec["cold_all"]:
                    continue
                try:
                    found = self.load(way, kind == "cold")
                except Exception as error:
                    traceback.print_exc()
                    broken.add(way)
                    gc.collect()
                    found = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
                out.write(json.dumps({"round": number, "kind": kind, "way": way, "rank": self.rank, **found}) + "\n")
                out.flush()


class Lines:
    """The plug-in's."""

    def __init__(self):
        import logging

        self.lines, handler = [], logging.Handler(logging.INFO)
        handler.emit = lambda record: self.lines.append(record.getMessage())
        logging.getLogger("vllm.mxfp4_repack").addHandler(handler)
        logging.getLogger("vllm.mxfp4_repack").setLevel(logging.INFO)


def child(spec, rank, path):
    with open(path, "w") as out:
        Rank(spec, rank).run(out)
    os._exit(0)


# All ranks --------------------------------------------------------------------------------------------

def prepare(arguments):
    """(checkpoint, {how: blob})"""
    arguments.work.mkdir(parents=True, exist_ok=True)
    size = f"{arguments.layers}x{arguments.experts}"
    model = starts.make_checkpoint(arguments.work / f"model-{size}", arguments, more=("--heads", 64, "--kv-heads", 8, "--vocabulary", arguments.vocabulary, "--shards", arguments.shards))
    ranks = ["--tp-size", arguments.ranks] if arguments.ranks > 1 else []
    return model, {what: starts.make_blob(arguments.work / f"blob-{size}-of-{arguments.ranks}-{method}", model, arguments, *shlex.split(arguments.deployment),
                                          *ranks, "--compress", method) for what, method in BLOBS.items() if what in arguments.ways}


def run_ranks(arguments, model, blobs, ways):
    """[record of a load on a rank], the ways in turn"""
    spec = {"model": str(model), "blobs": {what: str(path) for what, path in blobs.items()}, "ranks": arguments.ranks, "rounds": arguments.rounds,
            "cold": arguments.cold, "cold_all": arguments.cold_all, "ways": ways, "port": 29000 + os.getpid() % 900,
            "arguments": arguments.arguments, "without_kernels": arguments.without_kernels}
    children = []
    for rank in range(arguments.ranks):
        out = arguments.work / f"rank-{rank}.jsonl"
        # The last is what vLLM's CPU worker sets.
        environment = {**PEERS, **starts.environment(arguments.work, starts.ROOT / "tests" / "gpu"), "LOCAL_RANK": str(rank), "RANK": str(rank),
                       "VLLM_DIST_IDENT": str(spec["port"])}
        with open(arguments.work / f"rank-{rank}.log", "w") as log:
            children.append((out, subprocess.Popen([sys.executable, __file__, "--rank", str(rank), "--case", json.dumps(spec), "--report", str(out)],
                                                   stdout=log, stderr=log, env=environment)))
    until = time.monotonic() + arguments.seconds
    for _, process in children:
        try:
            process.wait(max(1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            print(f"stopped after {arguments.seconds} s", flush=True)
            process.kill()
    return [json.loads(line) for out, _ in children if out.exists() for line in out.read_text().splitlines() if line.endswith("}")]


def spread(values):
    values = sorted(values)
    return f"{statistics.median(values):.3f}" + (f" ({values[0]:.3f} to {values[-1]:.3f})" if len(values) > 1 else "")


def summed_up(arguments, records):
    """Prints the figures of each way, warm and cold; {kind: {way: figures}}"""
    loads = collections.defaultdict(dict)  # (kind, round, way) -> {rank: record}
    for record in records:
        loads[record["kind"], record["round"], record["way"]][record["rank"]] = record
    whole = {key: found for key, found in loads.items() if len(found) == arguments.ranks and not any("error" in one for one in found.values())}
    slowest = {key: max(found.values(), key=lambda one: one["seconds"]) for key, found in whole.items()}
    figures = collections.defaultdict(dict)
    for kind in ("first", "warm", "cold") if arguments.alone else ("warm", "cold"):
        for way in [OWN, *arguments.ways]:
            errors = {one["error"] for key, found in loads.items() if key[2] == way for one in found.values() if "error" in one}
            rounds = [key[1] for key in whole if key[0] == kind and key[2] == way and (kind, key[1], OWN) in whole]
            if errors and kind == "warm":
                report(f"{way}: not timed, it fails", way not in (OWN, *OURS), "")
                print(f"     {'; '.join(sorted(errors))}", flush=True)
            if rounds:
                figures[kind][way] = figures_of(way, kind, rounds, whole, slowest)
    return figures


def figures_of(way, kind, rounds, whole, slowest):
    own = [slowest[kind, number, OWN] for number in rounds]
    mine = [slowest[kind, number, way] for number in rounds]
    shares = [one["seconds"] / other["seconds"] for one, other in zip(mine, own)]
    ranks = sorted(whole[kind, rounds[0], way])
    peaks = [max(whole[kind, number, way][rank]["peak"] for number in rounds) for rank in ranks]
    weights = [max(whole[kind, number, way][rank]["kept"] for number in rounds) for rank in ranks]
    own_peaks = [max(whole[kind, number, OWN][rank]["peak"] for number in rounds) for rank in ranks]
    of_weights = [peak / weight for peak, weight in zip(peaks, weights) if weight]
    parts = {part: statistics.median(one["parts"][part] for one in mine) for part in mine[0]["parts"]}
    host = {what: max(found["host"][what] for number in rounds for found in whole[kind, number, way].values()) for what in ("anonymous", "all", "gpu")}
    print(f"     {kind}, {way}: {spread([one['seconds'] for one in mine])} s, share {spread(shares)}; GPU peak "
          f"{[f'{peak / 2**20:.0f} MiB' for peak in peaks]}, of its weights {[f'{share:.3f}' for share in of_weights]}, of vLLM's own "
          f"{[f'{peak / other:.3f}' for peak, other in zip(peaks, own_peaks) if other]}; host grew {host['anonymous'] >> 20} MiB anonymous, "
          f"{host['all'] >> 20} in all, the GPU's by its driver {host['gpu'] >> 20}; {', '.join(f'{part} {seconds:.2f}' for part, seconds in parts.items())}", flush=True)
    if way in OURS:
        taken = {(one["taken"], one["proven"]) for number in rounds for one in whole[kind, number, way].values()}
        layers = {number + proven for number, proven in taken}
        report(f"{kind}, {way}: (taken, proven) of each load {sorted(taken)}", len(layers) == 1 and min(layers) > 0, mine[0]["lines"])
    if way in OURS and kind == "warm":
        aim = AIMS[way == NO_BLOB][len(ranks) > 1]
        report(f"{way}: share {statistics.median(shares):.3f}, aim {aim}; peak of the weights {max(of_weights, default=0):.3f}, aim {PEAK_AIM}",
               statistics.median(shares) <= aim and max(of_weights, default=0) <= PEAK_AIM)
    return {"seconds": [one["seconds"] for one in mine], "shares": shares, "peaks": peaks, "kept": weights, "host": host, "parts": parts}


def parser_of(text):
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    starts.add_arguments(parser, layers=8, experts=128)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--vocabulary", type=int, default=201088)
    parser.add_argument("--shards", type=int, default=5)
    parser.add_argument("--alone", type=int, default=0, metavar="TIMES", help="each way in processes of its own")
    parser.add_argument("--cold", type=int, default=0, help="rounds with cold files, of vLLM's own and the blobs")
    parser.add_argument("--cold-all", action="store_true", help="cold rounds of every way")
    parser.add_argument("--ways", nargs="*", default=list(OURS))
    parser.add_argument("--deployment", default="--arch sm90 --moe-backend triton", help="flags of convert")
    parser.add_argument("--work", type=lambda text: pathlib.Path(text).resolve(), default=pathlib.Path("/tmp/whole-load"))
    parser.add_argument("--prepare", action="store_true", help="make the checkpoint and the blobs, and stop")
    parser.add_argument("--seconds", type=int, default=500, help="for all loads together")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--case", type=json.loads, help=argparse.SUPPRESS)
    return parser


def main():
    arguments = parser_of(__doc__).parse_args()
    if arguments.case:
        return child(arguments.case, arguments.rank, arguments.report)
    begin = time.perf_counter()
    model, blobs = prepare(arguments)
    print(f"checkpoint and blobs: {time.perf_counter() - begin:.0f} s", flush=True)
    if arguments.prepare:
        return 0
    os.sync()  # what was just written would be written during the loads
    ways, records = [OWN, *arguments.ways], []
    for number in range(arguments.alone or 1):
        for together in [[way] for way in random.sample(ways, len(ways))] if arguments.alone else [ways]:
            records += [{**one, "round": one["round"] + 100 * number} for one in run_ranks(arguments, model, blobs, together)]
    figures = summed_up(arguments, records)
    if arguments.report:
        arguments.report.write_text(json.dumps({"figures": figures, "loads": records}, indent=1) + "\n")
    good = all(way in figures["warm"] for way in (OWN, *(way for way in arguments.ways if way in OURS)))
    report("every load that has an aim was timed", good, f"see {arguments.work}/rank-*.log")
    return 1 if starts.failures else 0


if __name__ == "__main__":
    sys.exit(main())
