#!/usr/bin/env python3
"""A compiled vLLM on a GPU, with this program's weights and with its own: equal weights, equal tokens, equal log-probabilities.

    engine_check.py --program MXFP4_REPACK --revision REVISION [--backends triton marlin] [--work DIR]
                    [--layers 4 --experts 32 --hidden 2880 --inter 2880] [--only WORD...]
                    [--arguments JSON] [--report FILE]

vLLM is the one that this interpreter imports; REVISION names its release to the program. Makes two gpt-oss
checkpoints of random weights in DIR, packs the first for each backend, default and plain, and starts vLLM's
own LLM class in processes of their own, the engine inside. Each start gives the experts' state and 6
prompts of 48 greedy tokens with their log-probabilities: vLLM alone, the default blob, the plain one, no blob,
vLLM alone again. Three groups for each backend, all side by side:

  eager     then a reload of the second checkpoint's weights into the running engine;
  compiled  torch.compile and CUDA graphs, the same reload, after a start of vLLM alone that fills the compiler's
            cache: code fresh from the compiler answers otherwise than the same code from the cache;
  sleep     eager, level 1 and awake; level 2, awake and reloaded.

A start without a blob ends with the first checkpoint's weights, sent from the GPU's memory as a trainer does.

A start is compared with vLLM alone's. What follows a start (STEPS) is compared with a start of vLLM alone that has the
weights which are there then: state, tokens, log-probabilities; and no tensor may have moved. What vLLM alone gives in
the same step is printed beside it, and is no failure. Both checkpoints have attention sinks of zero, since
the reload of 0.26.0 and 0.27.0 leaves sinks as they are, and after a sleep of level 2 they are zero.

Prints a line for each, exits 1 if one is not equal. Needs a GPU. Where flashinfer is not installed, set
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
    """What a model holds, as plain values that JSON keeps, and where."""
    import expert_state

    (found,), (places,) = llm.apply_model(expert_state.state), llm.apply_model(expert_state.addresses)
    return {"state": {name: repr(value) for name, value in found.items()}, "places": places}


def free_bytes():
    import torch

    return torch.cuda.mem_get_info()[0]


def send(worker, directory):
    from safetensors.torch import load_file

    worker.reload_weights(weights_iterator=(tensor for path in sorted(pathlib.Path(directory).glob("*.safetensors"))
                                            for tensor in load_file(path, device="cuda").items()))


def step(llm, what, spec):
    """One thing done with a running engine."""
    found = {}
    if what == "reload":
        llm.collective_rpc("reload_weights", kwargs={"weights_path": spec["other"]})
    elif what == "sent":
        llm.collective_rpc(send, args=(spec["model"],))
    elif what.startswith("sleep"):
        before = free_bytes()
        llm.sleep(level=int(what[-1]))
        found["freed"] = free_bytes() - before
        if what == "sleep 2":
            llm.wake_up(tags=["weights"])
            llm.collective_rpc("reload_weights")
            llm.wake_up(tags=["kv_cache"])
        else:
            llm.wake_up()
    return {**found, **state_of(llm), "generated": generated(llm)}


def run_case(spec):
    """{"lines", "seconds", "steps": {step: result}}; after a step that raises, no other is taken."""
    import engine
    from vllm import LLM

    lines, begin = engine.messages(), time.perf_counter()
    arguments = {**starts.engine_arguments(ENGINE, spec), "model": spec["model"], "moe_backend": spec["backend"], "enforce_eager": spec["eager"],
                 "enable_sleep_mode": spec["sleeps"]}
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

STEPS = {"eager": ["reload"], "compiled": ["reload"], "sleep": ["sleep 1", "sleep 2"]}
OTHER = "vLLM alone with the other weights"
ALONE = "vLLM alone"
SAYS = {"reload": "loaded again in place", "sleep 2": "loaded again in place", "sent": "made from weights that were sent"}


def cases(backend, how):
    """(name, blob) of each start; those of vLLM alone first, with which the others are compared."""
    if how == "compiled":
        yield f"{backend}, {how}, vLLM filling its cache", None
    if "reload" in STEPS[how]:
        yield f"{backend}, {how}, {OTHER}", None
    yield f"{backend}, {how}, {ALONE}", None
    for what, method in BLOBS.items():
        yield f"{backend}, {how}, {what}", method
    yield f"{backend}, {how}, {NO_BLOB}", NO_BLOB
    yield f"{backend}, {how}, {ALONE} again", None


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
        other, starts_only = name.endswith(OTHER), name.endswith(("cache", OTHER, "again"))
        spec = {"backend": backend, "blob": blob, "eager": how != "compiled", "sleeps": how == "sleep",
                "steps": [] if starts_only else STEPS[how] + ["sent"] * (method == NO_BLOB), "model": "model", "other": str(arguments.work / "model-2"), "arguments": arguments.arguments, "without_kernels": arguments.without_kernels}
        base = arguments.work / name.replace(", ", "-").replace(" ", "_")
        # Compiled code is kept under the model's name, which is therefore the same for both models.
        where = arguments.work / ("in-2" if other else "in-1")
        begin = time.perf_counter()
        with open(f"{base}.log", "w") as log:
            try:
                subprocess.run([sys.executable, __file__, "--case", json.dumps(spec), "--report", f"{base}.json"], stdout=log,
                               stderr=log, timeout=CASE_SECONDS, cwd=where, env=environment(arguments.work, arguments.library))
                done[name] = json.loads(pathlib.Path(f"{base}.json").read_text())
            except (OSError, ValueError, subprocess.TimeoutExpired) as error:
                done[name] = {"steps": {"start": {"error": type(error).__name__, "text": str(error)[-200:]}}}
        results[name] = summary(name, blob is None, done, time.perf_counter() - begin)
        if "error" in done[name]["steps"]["start"] and not blob:
            return


def compared(want, found, moved):
    """("" where equal, or what differs; a word on how much was compared). moved: names of tensors that did."""
    for which, one in (("the start to compare with", want), ("here", found)):
        if "error" in one:
            return f"{which}: {one['error']} {one['text'][-300:]}", f"fails: {one['error']}: {one['text'][-120:]}"
    if not want["state"] or not starts.finite(want["generated"]):
        return "no experts were found, or no numbers", ""
    differing = starts.states_differ(want["state"], found["state"])
    wrong, largest = starts.tokens_differ(want["generated"], found["generated"])
    text = (f"{len(want['state'])} entries, {len(differing)} differ; {len(found['places'])} addresses, {len(moved)} changed; "
            f"{len(want['generated'])} prompts, {wrong} with other tokens, log-probabilities differ by {largest}")
    good = not differing and not moved and not wrong and largest == 0 and starts.finite(found["generated"])
    return ("" if good else f"{differing[:3]} {moved[:3]} {text}"), text


def summary(name, alone, done, seconds):
    """Prints and returns the result of a start and what followed."""
    group, steps, lines = name.rpartition(", ")[0], done[name]["steps"], done[name].get("lines", ())
    taken = sum(": taken from " in line or ": made from " in line for line in lines)
    proven = sum("own conversion equals" in line for line in lines)
    kept = {"seconds": seconds, "taken": taken, "proven": proven, "steps": {}}
    judged = not name.endswith(("cache", OTHER, ALONE))
    for what, found in steps.items():
        start = f"{group}, {OTHER if what == 'reload' else ALONE}"
        want = done.get(start, {"steps": {"start": {"error": "was not run", "text": start}}})["steps"]["start"]
        before = steps["start"].get("places", {})
        moved = [] if what == "start" or "error" in found else [key for key in before if before[key] != found["places"].get(key)]
        wrong, text = compared(want, found, moved)
        label = name if what == "start" else f"{name}, {what}"
        if judged and (what == "start" or not alone):
            report(f"{label}: {taken} taken, {proven} proven; {text}", not wrong, wrong)
            if what in SAYS:
                said = [line for line in lines if SAYS[what] in line]
                report(f"{label}: every layer {SAYS[what]}", len(said) == 1 and f" {taken + proven} layers {SAYS[what]}" in said[0], lines[-3:])
        elif what == "start":
            report(label, "error" not in found and starts.finite(found["generated"]), text or wrong)
        else:
            print(f"     {label}: {text or wrong}", flush=True)
        kept["steps"][what] = {"wrong": wrong, "text": text, "moved": moved, **{key: found[key] for key in ("freed", "error") if key in found}}
    if not alone and taken + proven == 0:
        report(f"{name}: layers from the source", False, lines)
    return kept


def prepare(arguments):
    """Two checkpoints, each as `model` in a directory of its own, and the blobs of the first."""
    arguments.work.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        models = list(pool.map(lambda seed: starts.make_checkpoint(arguments.work / f"model-{seed}", arguments, seed), (1, 2)))
    for model in models:
        starts.zero(model, ".sinks")
        link = arguments.work / model.name.replace("model", "in") / "model"
        link.parent.mkdir(exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(model)
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
