#!/usr/bin/env python3
"""Runs releases: each platform of each release in a process of its own, forked from one that has imported all but vLLM.

usage: run.py [--out DIR] [--cache DIR] [--jobs N] [--inputs FILE] [--converters] [--sizes FILE | --sizes SEED COUNT] VERSION...

Writes OUT/VERSION.json: {"release", "wheel", "grid", "answers", "tables"}. Needs a Python with torch and what vLLM imports (README.md).
"""
import argparse
import importlib
import json
import os
import sys
import time
import traceback

import grid
import wheels

# Constants such as the fp8 type are fixed when vLLM is imported, and differ on gfx94x, which therefore gets a process of its own.
CONVERTER_STARTS = [("cuda", "sm90"), ("rocm", "gfx950")]
STARTS = [("cuda", "sm90"), ("rocm", "gfx950"), ("rocm", "gfx942"), ("xpu", ""), ("cpu", ""), ("other", "")]


def belongs(case, platform, arch):
    return case["platform"] == platform and (platform != "rocm" or ("gfx94" in case["arch"]) == ("gfx94" in arch))


def child(site, platform, arch, rows, sizes, path):
    """Executes the inputs of one platform and its tables; the result is a JSON file."""
    import decisions
    import tables
    import world

    scene = world.start(site, platform, arch)
    release = decisions.Release(scene)
    chosen = [i for i, (_, case) in enumerate(rows) if belongs(case, platform, arch)]
    made = decisions.answers(release, [rows[i][1] for i in chosen])
    result = {"answers": dict(zip(map(str, chosen), made)), "machines": tables.on_machines(release, platform, arch, [size[2:4] for size in sizes] or tables.SIZES)}
    if platform == "cuda":
        result["general"] = tables.general(release)
    with open(path + ".new", "w") as out:
        json.dump(result, out, ensure_ascii=False)
    os.rename(path + ".new", path)
    modules = [n for n, m in sys.modules.items() if n.split(".")[0] != "vllm" and world.flag_of(n) is None and getattr(m, "__spec__", None)]
    return modules


def convert(version, cache, platform, arch, sizes, path):
    """Digests of the converters' results on one platform, as a JSON file."""
    import torch

    import aiter_source
    import converters
    import cpu_kernels
    import decisions
    import deep_gemm_kernels
    import humming_kernels
    import kernels
    import triton_source
    import world

    pins = wheels.provenance(version, cache)["pins"]
    humming = pins.get("humming-kernels") if platform == "cuda" else None
    real = ("triton_kernels", "flashinfer") + (("humming",) if humming else ())
    torch_folder = wheels.torch_site(version, cache) if platform == "cuda" else None
    faked = ("aiter",) if platform == "rocm" else () if torch_folder is None else ("deep_gemm",)
    scene = world.start(wheels.site(version, cache), platform, arch, real=real, faked=faked)
    kernels.install_flashinfer(pins["flashinfer-python"], cache)
    if "humming" in real:
        humming_kernels.install(humming, cache, scene)
    if torch_folder is not None:
        deep_gemm_kernels.install(version, cache, scene, torch_folder)
    triton_kernels = triton_source.sources(version, cache) if platform == "rocm" else {}
    if triton_kernels:
        # vLLM asks at its import which of them there is.
        triton_source.install(next(iter(triton_kernels.values())))
    release = decisions.Release(scene)
    # After the import, in which vLLM declares the operators that it finds: prepare() adds some.
    converters.prepare(torch, scene)
    if torch_folder is not None:
        cpu_kernels.install(version, cache, torch_folder)
    aiter = aiter_source.sources(cache) if platform == "rocm" else {}
    rows = converters.digests(release, platform, sizes or converters.SIZES, aiter, triton_kernels)
    with open(path + ".new", "w") as out:
        json.dump({"converters": rows}, out, ensure_ascii=False)
    os.rename(path + ".new", path)


def preload(cache):
    """Imports in the parent what a child needed before: importing vLLM then takes a tenth of the time."""
    path = os.path.join(cache, "modules.txt")
    for name in open(path).read().split() if os.path.exists(path) else ("torch",):
        try:
            importlib.import_module(name)
        except Exception:
            pass


def part_path(job, out):
    version, platform, arch = job
    return os.path.join(out, f"{version}.{platform}{'-' + arch if arch else ''}.part")


def launch(job, rows, sizes, out, cache, converters=False):
    version, platform, arch = job
    path = part_path(job, out)
    pid = os.fork()
    if pid:
        return pid
    code = 1
    with open(path + ".log", "w") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        try:
            if converters:
                convert(version, cache, platform, arch, sizes, path)
            else:
                modules = child(wheels.site(version, cache), platform, arch, rows, sizes, path)
            if not converters and not os.path.exists(os.path.join(cache, "modules.txt")):
                with open(os.path.join(cache, "modules.txt"), "w") as listed:
                    listed.write("\n".join(modules))
            code = 0
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def join_parts(version, rows, out, cache):
    """One file of the parts of all platforms, once they are all there."""
    jobs = [(version, *start) for start in STARTS]
    if not all(os.path.exists(part_path(job, out)) for job in jobs):
        return
    answers, made = [None] * len(rows), {"release": version, "wheel": wheels.provenance(version, cache), "grid": grid.digest(rows), "tables": {}}
    for job in jobs:
        platform, path = job[1], part_path(job, out)
        part = json.load(open(path))
        for index, answer in part["answers"].items():
            answers[int(index)] = answer
        made["tables"].setdefault("machines", {}).setdefault(platform, {}).update(part["machines"])
        made["tables"].update({"general": part["general"]} if "general" in part else {})
        os.remove(path)
        os.remove(path + ".log")
    with open(os.path.join(out, f"{version}.json"), "w") as file:
        json.dump(made | {"answers": answers}, file, ensure_ascii=False)


def join_converters(version, out, cache):
    paths = [part_path((version, *start), out) for start in CONVERTER_STARTS]
    if all(map(os.path.exists, paths)):
        rows = [row for path in paths for row in json.load(open(path))["converters"]]
        with open(os.path.join(out, f"{version}.converters.json"), "w") as file:
            json.dump({"release": version, "wheel": wheels.provenance(version, cache), "rows": rows}, file, ensure_ascii=False)
        for path in paths:
            os.remove(path)
            os.remove(path + ".log")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("versions", nargs="+")
    parser.add_argument("--out", default="engines-out")
    parser.add_argument("--cache", default=wheels.default_cache())
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--converters", action="store_true", help="digests of the converters' results in place of decisions: OUT/VERSION.converters.json")
    parser.add_argument("--inputs", help="inputs of your own, one JSON object a line, in place of the grid")
    parser.add_argument("--sizes", nargs="+", metavar="FILE | SEED COUNT",
                        help="layer sizes of your own, for converters or for the rounding: one JSON object with seed, E, H, I and bias a line, or COUNT drawn")
    arguments = parser.parse_args()
    if arguments.sizes and len(arguments.sizes) > 2:
        parser.error("--sizes takes a file, or a seed and a count; versions go before it")
    os.makedirs(arguments.out, exist_ok=True)
    for version in arguments.versions:
        wheels.site(version, arguments.cache)
    preload(arguments.cache)
    rows = [] if arguments.converters else [("own", json.loads(line)) for line in open(arguments.inputs)] if arguments.inputs else grid.inputs()
    sizes = grid.own_sizes(arguments.sizes) if arguments.sizes else []
    failed = 0
    jobs = [(version, *start) for version in arguments.versions for start in (CONVERTER_STARTS if arguments.converters else STARTS)]
    waiting = [job for job in jobs if not os.path.exists(part_path(job, arguments.out))]
    running = {}
    while waiting or running:
        while waiting and len(running) < arguments.jobs:
            job = waiting.pop(0)
            running[launch(job, rows, sizes, arguments.out, arguments.cache, arguments.converters)] = job
        pid, status = os.wait()
        job = running.pop(pid)
        print(time.strftime("%H:%M:%S"), *job, "failed" if status else "ok", flush=True)
        if status:
            print(open(part_path(job, arguments.out) + ".log").read())
        failed += status != 0
        if arguments.converters:
            join_converters(job[0], arguments.out, arguments.cache)
        else:
            join_parts(job[0], rows, arguments.out, arguments.cache)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
