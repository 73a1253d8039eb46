#!/usr/bin/env python3
"""vLLM on two GPUs, with and without blobs: equal weights on each rank, equal tokens, equal log-probabilities.

    two_gpus.py --program MXFP4_REPACK --revision REVISION [--deployment "--arch sm90 --moe-backend triton"]
                [--layers 4 --experts 32 --hidden 2880 --inter 2880] [--work DIR] [--only WORD...]
                [--without-kernels] [--arguments JSON] [--report FILE]

vLLM is the one that this interpreter imports, with the plug-in as pip installs it; nothing stands in for
either. REVISION names the release to the program. Makes a gpt-oss checkpoint of random weights in DIR and
packs it for two ranks, default and plain, for tensor and for expert parallel. Then vLLM's own LLM class
starts in processes of their own, its workers in further ones: vLLM alone, the default blob,
the plain one, no blob, vLLM alone again. Checked of each start, for each rank:

  where the worker found the plug-in: an entry point of an installed distribution
  layers taken from the blob: all of them
  the experts' state: every entry as in vLLM alone
  6 prompts of 48 greedy tokens and their log-probabilities, which all ranks make together

The two groups run side by side. Prints a line for each check, exits 1 if one fails. Needs two GPUs. NVLink multicast stays off. Where flashinfer is not installed, set
VLLM_USE_FLASHINFER_SAMPLER=0.
"""
import argparse
import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import time

import starts
from starts import BLOBS, ENGINE, NO_BLOB, report

RANKS = 2
GROUPS = {"TP 2": {}, "EP 2": {"enable_expert_parallel": True}}
SUM = re.compile(r"pid=(\d+)\).*mxfp4-repack: (\d+) layers (?:taken|made) from (\S+), (\d+) converted")


# One start, in a process of its own -------------------------------------------------------------------

def of_worker(worker):
    """What a worker says of itself; runs there."""
    from importlib.metadata import entry_points

    from vllm.model_executor.model_loader import _LOAD_FORMAT_TO_MODEL_LOADER as formats

    found = entry_points(group="vllm.general_plugins", name="mxfp4_repack")
    loader = formats.get("mxfp4_repack")
    return {"pid": os.getpid(), "rank": worker.rank, "device": str(worker.device), "loader": loader and loader.__module__,
            "found in": [str(one.dist.locate_file("")) for one in found], "entry points": [f"{one.dist.name} {one.value}" for one in found]}


def run_case(spec):
    import expert_state
    from vllm import LLM

    begin = time.perf_counter()
    arguments = {**starts.engine_arguments({**ENGINE, "moe_backend": "triton", "enforce_eager": True, "disable_custom_all_reduce": True}, spec),
                 "model": spec["model"], "tensor_parallel_size": RANKS, "distributed_executor_backend": "mp", **GROUPS[spec["group"]]}
    if spec["blob"]:
        arguments.update(starts.load_format(spec["blob"]))
    assert not any(name.startswith("mxfp4_repack") for name in sys.modules), "the plug-in is imported before vLLM asks for it"
    llm = LLM(**arguments)
    states = llm.apply_model(expert_state.state)
    return {"seconds": time.perf_counter() - begin, "workers": llm.collective_rpc(of_worker), "parent": os.getpid(),
            "states": [{name: repr(value) for name, value in state.items()} for state in states], "generated": starts.generated(llm)}


def child(spec, path):
    with open(path, "w") as file:
        json.dump(run_case(spec), file)
    os._exit(0)  # processes of an engine that failed may keep it alive


# All of them ------------------------------------------------------------------------------------------

def cases(group):
    """(name, how its blob is compressed) of each start; vLLM alone first, with which the others are compared."""
    yield f"{group}, vLLM alone", None
    for what, method in BLOBS.items():
        yield f"{group}, {what}", method
    yield f"{group}, {NO_BLOB}", NO_BLOB
    yield f"{group}, vLLM alone again", None


def blob_of(arguments, group, method):
    return arguments.work / f"{group.replace(' ', '-')}-{method}"


def run_group(group, arguments, results):
    """Starts that are compared with each other, one after another; none but the first where that fails."""
    own = None
    for name, method in cases(group):
        if any(word not in name for word in arguments.only):
            continue
        spec = {"group": group, "blob": str(blob_of(arguments, group, method)) if method in BLOBS.values() else method, "model": str(arguments.work / "model"),
                "arguments": arguments.arguments, "without_kernels": arguments.without_kernels}
        base = arguments.work / name.replace(", ", "-").replace(" ", "_")
        with open(f"{base}.log", "w") as log:
            try:
                start([sys.executable, __file__, "--case", json.dumps(spec), "--report", f"{base}.json"], log, arguments)
                found = json.loads(pathlib.Path(f"{base}.json").read_text())
            except (OSError, ValueError, subprocess.TimeoutExpired) as error:
                report(name, False, f"{type(error).__name__}; the end of {base}.log: {last_errors(f'{base}.log')}")
                results[name] = {"error": last_errors(f"{base}.log")}
                if own is None:
                    return
                continue
        own = own or found
        results[name] = compared(name, own, found, taken(f"{base}.log", found), arguments.layers, bool(method))


def start(command, log, arguments):
    """Ends with all its processes: an engine may outlive the one that started it. The engine is in the first of them:
    requests reach an engine in a process of its own one by one, so which of them its first batch holds is chance, and so are the last bits."""
    environment = starts.environment(arguments.work, starts.ROOT / "tests" / "gpu", starts.ROOT / "tests" / "python" / "engine")
    process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, env={
        **environment, "VLLM_ALLOW_INSECURE_SERIALIZATION": "1", "VLLM_ENABLE_V1_MULTIPROCESSING": "0"})
    try:
        process.wait(arguments.case_seconds)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def last_errors(path):
    lines = pathlib.Path(path).read_text(errors="replace").splitlines()
    return [line[-200:] for line in lines if re.search(r"^\S*(Error|Exception|Refused)\b|\) \S*Error: ", line)][-4:] or lines[-4:]


def taken(path, found):
    """{rank: (layers taken, converted by vLLM)}, from the lines of the workers."""
    ranks = {str(worker["pid"]): worker["rank"] for worker in found["workers"]}
    return {ranks[pid]: (int(number), int(rest)) for pid, number, _, rest in SUM.findall(pathlib.Path(path).read_text(errors="replace"))
            if pid in ranks}


def compared(name, own, found, layers, expected, blob):
    """Reports what a start came to, and gives it as it is kept."""
    workers = sorted(found["workers"], key=lambda worker: worker["rank"])
    places = sorted({place for worker in workers for place in worker["found in"]})
    good = all(worker["loader"] == "mxfp4_repack.vllm.load_format" and len(worker["entry points"]) == 1 and worker["pid"] != found["parent"]
               for worker in workers) and len(workers) == RANKS
    report(f"{name}: {len(workers)} workers on {[worker['device'] for worker in workers]} found {workers[0]['entry points']} in {places}", good, workers)
    if blob:
        report(f"{name}: (taken, converted) of each rank: {layers}", layers == {rank: (expected, 0) for rank in range(RANKS)})
    differing = [len(starts.states_differ(*pair)) for pair in zip(own["states"], found["states"])]
    entries = [len(state) for state in found["states"]]
    report(f"{name}: entries of each rank {entries}, differ {differing}", differing == [0] * RANKS and min(entries) > 0,
           [starts.states_differ(*pair)[:4] for pair in zip(own["states"], found["states"])])
    wrong, largest = starts.tokens_differ(own["generated"], found["generated"])
    usable = starts.finite(found["generated"])
    number = sum(len(tokens) for tokens, _ in found["generated"])
    report(f"{name}: {number} tokens{'' if usable else ', NaN'}; {wrong} of {len(found['generated'])} prompts with other tokens, log-probabilities differ "
           f"by {largest}; {found['seconds']:.0f} s", usable and not wrong and not largest)
    return {"seconds": found["seconds"], "workers": workers, "layers": layers, "entries": entries, "differ": differing, "other tokens": wrong,
            "largest": largest, "first tokens": [tokens[:8] for tokens, _ in found["generated"]]}


def prepare(arguments):
    arguments.work.mkdir(parents=True, exist_ok=True)
    model = starts.make_checkpoint(arguments.work / "model", arguments)
    for group, more in GROUPS.items():
        for method in BLOBS.values():
            starts.make_blob(blob_of(arguments, group, method), model, arguments, *shlex.split(arguments.deployment), "--tp-size", RANKS, "--compress",
                             method, *(["--enable-expert-parallel"] if more else []))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    starts.add_arguments(parser, layers=4, experts=32)
    parser.add_argument("--deployment", default="--arch sm90 --moe-backend triton", help="flags of convert")
    parser.add_argument("--work", type=lambda text: pathlib.Path(text).resolve(), default=pathlib.Path("/tmp/two-gpus"))
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD", help="starts with all these words in their names")
    parser.add_argument("--case-seconds", type=int, default=240, help="for each start")
    parser.add_argument("--case", type=json.loads, help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    if arguments.case:
        return child(arguments.case, arguments.report)
    prepare(arguments)
    results = {}
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for group in [pool.submit(run_group, group, arguments, results) for group in GROUPS]:
            group.result()
    return starts.finish(results, arguments.report)


if __name__ == "__main__":
    sys.exit(main())
