#!/usr/bin/env python3
"""A compiled vLLM on a GPU, with this program's weights and with its own: equal weights, equal tokens, equal log-probabilities.

    engine_check.py --program MXFP4_REPACK --revision REVISION [--backends triton marlin] [--work DIR]
                    [--layers 4 --experts 32 --hidden 2880 --inter 2880] [--only WORD...]
                    [--arguments JSON] [--report FILE]

vLLM is the one that this interpreter imports; REVISION names its release to the program. Makes two gpt-oss
checkpoints of random weights in DIR, packs the first for each backend, default and plain, and starts vLLM's
own LLM class in processes of their own, the engine inside. Each start gives the experts' state and 6
prompts of 48 greedy tokens with their log-probabilities: vLLM alone, the default blob, the plain one, vLLM
alone again. Three groups for each backend, all side by side:

  eager     then a reload of the second checkpoint's weights into the running engine;
  compiled  torch.compile and CUDA graphs, after a start of vLLM alone that fills the compiler's cache:
            code fresh from the compiler answers otherwise than the same code from the cache;
  sleep     eager, level 1 and awake; level 2, awake and reloaded.

Each is compared with vLLM alone doing the same. Where vLLM alone fails with an error, the blob's run fails
with the same, or reloads all the same: then its experts are compared with those of a start with these
weights. Where vLLM alone generates NaN, there is nothing to compare with, and a line says so. Prints a
line for each, exits 1 if one is not equal. Needs a GPU. Where flashinfer is not installed, set
VLLM_USE_FLASHINFER_SAMPLER=0. For flashinfer's kernels its autotuner must be off, since it chooses by
time: --arguments '{"enable_flashinfer_autotune": false}'.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import time

import starts
from starts import BLOBS, ENGINE, NO_BLOB, ROOT, generated, report

CASE_SECONDS = 300


# One start, in a process of its own -------------------------------------------------------------------

def error_of(error):
    return {"error": type(error).__name__, "text": str(error)[-400:]}


def state_of(llm):
    """{entry: value}, as plain values that JSON keeps."""
    import expert_state

    (found,) = llm.apply_model(expert_state.state)
    return {name: repr(value) for name, value in found.items()}


def free_bytes():
    import torch

    return torch.cuda.mem_get_info()[0]


def step(llm, what, spec):
    """One thing done with a running engine."""
    if what == "reload":
        llm.collective_rpc("reload_weights", kwargs={"weights_path": spec["other"]})
    elif what == "sleep 1":
        before = free_bytes()
        llm.sleep(level=1)
        freed = free_bytes() - before
        llm.wake_up()
        return {"freed": freed, "state": state_of(llm), "generated": generated(llm)}
    elif what == "sleep 2":
        before = free_bytes()
        llm.sleep(level=2)
        freed = free_bytes() - before
        llm.wake_up(tags=["weights"])
        llm.collective_rpc("reload_weights")
        llm.wake_up(tags=["kv_cache"])
        return {"freed": freed, "state": state_of(llm), "generated": generated(llm)}
    return {"state": state_of(llm), "generated": generated(llm)}


def run_case(spec):
    """{"lines", "seconds", "steps": {step: result}}; after a step that raises, no other is taken."""
    import engine
    from vllm import LLM

    lines, begin = engine.messages(), time.perf_counter()
    arguments = {**starts.engine_arguments(ENGINE, spec), "model": spec["model"], "moe_backend": spec["backend"], "enforce_eager": spec["eager"],
                 "enable_sleep_mode": "sleep 1" in spec["steps"]}
    if spec["blob"]:
        arguments.update(starts.load_format(spec["blob"]))
    result = {"steps": {}}
    try:
        llm = LLM(**arguments)
    except Exception as error:
        result["steps"]["start"] = error_of(error)
        return result
    result["seconds"] = time.perf_counter() - begin
    for what in ["start", *spec["steps"]]:
        try:
            result["steps"][what] = step(llm, what, spec)
        except Exception as error:
            import traceback

            traceback.print_exc()
            result["steps"][what] = error_of(error)
            break
    result["lines"] = lines.clear()
    return result


def child(spec, path):
    with open(path, "w") as file:
        json.dump(run_case(spec), file)
    os._exit(0)  # an engine that failed in a reload may not end by itself


# All of them ------------------------------------------------------------------------------------------

STEPS = {"eager": ["reload"], "compiled": [], "sleep": ["sleep 1", "sleep 2"]}
OTHER = "vLLM alone with the other weights"


def cases(backend, how):
    """(name, blob) of each start; vLLM alone first, with which the others are compared."""
    if how == "compiled":
        yield f"{backend}, {how}, vLLM filling its cache", None
    yield f"{backend}, {how}, vLLM alone", None
    if how == "eager":
        yield f"{backend}, {how}, {OTHER}", None
    for what, method in BLOBS.items():
        yield f"{backend}, {how}, {what}", method
    yield f"{backend}, {how}, {NO_BLOB}", NO_BLOB
    yield f"{backend}, {how}, vLLM alone again", None


def environment(work, library):
    plugin = work / "plugin" / "mxfp4_repack-0.dist-info"
    plugin.mkdir(parents=True, exist_ok=True)
    (plugin / "entry_points.txt").write_text("[vllm.general_plugins]\nmxfp4_repack = mxfp4_repack.vllm:register\n")
    (plugin / "METADATA").write_text("Metadata-Version: 2.1\nName: mxfp4-repack\nVersion: 0\n")
    named = {"MXFP4_REPACK_LIBRARY": str(library)} if library else {}
    return {**starts.environment(work, ROOT / "scripts" / "python", plugin.parent), **named, "VLLM_ENABLE_V1_MULTIPROCESSING": "0"}


def run_group(backend, how, arguments, results):
    """Starts that are compared with each other, one after another; none but the first where that fails."""
    done = {}
    for name, method in cases(backend, how):
        if any(word not in name for word in arguments.only):
            continue
        blob = str(arguments.work / f"{backend}-{method}") if method in BLOBS.values() else method
        other = name.endswith(OTHER)
        spec = {"backend": backend, "blob": blob, "eager": how != "compiled", "steps": [] if other else STEPS[how],
                "model": str(arguments.work / ("model-2" if other else "model-1")), "other": str(arguments.work / "model-2"), "arguments": arguments.arguments, "without_kernels": arguments.without_kernels}
        base = arguments.work / name.replace(", ", "-").replace(" ", "_")
        begin = time.perf_counter()
        with open(f"{base}.log", "w") as log:
            try:
                ended = subprocess.run([sys.executable, __file__, "--case", json.dumps(spec), "--report", f"{base}.json"], stdout=log,
                                       stderr=log, timeout=CASE_SECONDS, env=environment(arguments.work, arguments.library)).returncode
                done[name] = json.loads(pathlib.Path(f"{base}.json").read_text())
            except (OSError, ValueError, subprocess.TimeoutExpired) as error:
                done[name] = {"steps": {"start": {"error": type(error).__name__, "text": str(error)[-200:]}}}
        results[name] = summary(name, done, time.perf_counter() - begin)
        if "error" in done[name]["steps"]["start"] and not blob:
            return


def finite(found):
    """Whether a step ended and its log-probabilities are numbers."""
    return "error" not in found and starts.finite(found["generated"])


def compared(own, found):
    """("" where equal, or what differs; a word on how much was compared)"""
    if "error" in own or "error" in found:
        same = own.get("error") is not None and own.get("error") == found.get("error")
        return "" if same else f"vLLM alone: {own.get('error')} {own.get('text')}; here: {found.get('error')} {found.get('text')}", \
            f"vLLM alone fails likewise: {own.get('error')}: {own.get('text', '')[:160]}"
    if not own["state"]:
        return "no experts were found", ""
    differing = starts.states_differ(own["state"], found["state"])
    wrong, largest = starts.tokens_differ(own["generated"], found["generated"])
    text = (f"{len(own['state'])} entries, {len(differing)} differ; {len(own['generated'])} prompts, {wrong} with other tokens, "
            f"log-probabilities differ by {largest}")
    return (f"{differing[:3]} {text}" if differing or wrong or largest else ""), text


def compared_with_start(done, name, what, found):
    """As compared(), for a step in which vLLM alone fails; experts only, since vLLM loads the rest."""
    start = name.rpartition(", ")[0] + ", " + (OTHER if what == "reload" else "vLLM alone")
    own = done.get(start, {"steps": {}})["steps"].get("start", {"error": "was not run"})
    if "error" in own:
        return f"{start}: {own['error']}", ""
    differing = starts.states_differ(own["state"], found["state"])
    text = f"vLLM alone fails; {len(own['state'])} entries, {len(differing)} other than after a start"
    return (f"{differing[:3]} {text}" if differing else ""), text


def summary(name, done, seconds):
    """Prints and returns the result of a start, beside that of vLLM alone."""
    result, own = done[name], done.get(name.rpartition(", ")[0] + ", vLLM alone")
    taken = sum(": taken from " in line or ": made from " in line for line in result.get("lines", ()))
    proven = sum("own conversion equals" in line for line in result.get("lines", ()))
    kept = {"seconds": seconds, "taken": taken, "proven": proven, "steps": {}}
    for what, found in result["steps"].items():
        against = done[name.rpartition(", ")[0] + ", vLLM alone"]["steps"].get(what) if own else None
        label = name if what == "start" else f"{name}, {what}"
        if result is own or against is None or name.endswith(OTHER):
            word = f"error {found['error']} {found['text'][-160:]}" if "error" in found else "finite" if finite(found) else "NaN"
            report(f"{label}: {word}", finite(found) or what != "start", word)
            kept["steps"][what] = {k: v for k, v in found.items() if k in ("error", "text", "freed")}
            continue
        if "error" not in against and not finite(against):
            print(f"--   {label}: vLLM alone generates NaN, nothing to compare with", flush=True)
            continue
        if "error" in against and "error" not in found:
            wrong, text = compared_with_start(done, name, what, found)
        else:
            wrong, text = compared(against, found)
        report(f"{label}: {taken} taken, {proven} proven; {text}", not wrong, wrong)
        kept["steps"][what] = {"wrong": wrong, "text": text, "freed": (found.get("freed"), against.get("freed"))}
    if "blob" in name and taken + proven == 0:
        report(f"{name}: layers from the source", False, result.get("lines"))
    return kept


def prepare(arguments):
    """Two checkpoints and the blobs of the first."""
    arguments.work.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(lambda seed: starts.make_checkpoint(arguments.work / f"model-{seed}", arguments, seed), (1, 2)))
    for backend in arguments.backends:
        for method in BLOBS.values():
            starts.make_blob(arguments.work / f"{backend}-{method}", arguments.work / "model-1", arguments, "--arch", arguments.arch,
                             "--moe-backend", backend, "--compress", method)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    starts.add_arguments(parser, layers=4, experts=32)
    parser.add_argument("--library", type=lambda text: pathlib.Path(text).resolve(), help="libmxfp4_repack.so.0, if it is not installed")
    parser.add_argument("--backends", nargs="+", default=["triton", "marlin"])
    parser.add_argument("--arch", default="sm90")
    parser.add_argument("--work", type=lambda text: pathlib.Path(text).resolve(), default=pathlib.Path("/tmp/engine-check"))
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD", help="starts with all these words in their names")
    parser.add_argument("--case", type=json.loads, help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    if arguments.case:
        return child(arguments.case, arguments.report)
    prepare(arguments)
    results = {}
    with concurrent.futures.ThreadPoolExecutor() as pool:
        groups = [pool.submit(run_group, backend, how, arguments, results) for backend in arguments.backends for how in STEPS]
        for group in groups:
            group.result()
    return starts.finish(results, arguments.report)


if __name__ == "__main__":
    sys.exit(main())
