"""One installed release of vLLM takes blobs of this program: row.py SITE, with BIN and MXFP4_SOURCE set.

SITE is what pip installed (its compiled parts are not used). The plug-in is found by vLLM's own plug-in loader, the model is built on
meta, loaded and converted by the release; see engine.py for what is faked. Every load runs in a process forked from one that has
imported vLLM. Prints a line for each check; exit 1 if one failed.
"""
import json
import os
import pathlib
import subprocess
import sys
import time

import engine
from processes import begun, collected, forked, live_bytes

BIN, SOURCE = os.environ["BIN"], pathlib.Path(os.environ["MXFP4_SOURCE"])
SHAPE = ("--layers", "3", "--experts", "8", "--hidden", "320", "--intermediate", "352")
failures = 0
port = 29700 + os.getpid() % 200 * 8


def report(what, good, text=""):
    global failures
    failures += not good
    print(f"{'ok  ' if good else 'FAIL'} {what}{'' if good else ': ' + str(text)[:600]}", flush=True)


def program(*arguments):
    done = subprocess.run([BIN, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"{' '.join(map(str, arguments))}: {done.stderr}")


def checkpoint(name, *shape, seed=1):
    if not os.path.exists(name):
        subprocess.run([sys.executable, str(SOURCE / "scripts/make-checkpoint"), name, "--seed", str(seed), *SHAPE, *shape], check=True,
                       stdout=subprocess.DEVNULL)
    return name


def blob(name, *flags, source="model", arch="sm90", backend="triton"):
    if not os.path.exists(name):
        program("convert", source, "-o", name, "-q", "--arch", arch, "--moe-backend", backend, "--revision", REVISION, *flags)
    return os.path.abspath(name)


# Loads ----------------------------------------------------------------------------------------------

def loaded(arguments, environment=(), rank=0, ranks=1, at=None, after=None, kept=False):
    """Loads once; {"state", "lines", "bytes", "modules", "seconds"}."""
    os.environ.update(environment)
    lines = engine.messages()
    if environment:
        from mxfp4_repack.vllm.environment import register_environment
        register_environment()
    config = engine.config_of(**{"model": "model", "moe_backend": "triton", **arguments})
    begin = time.perf_counter()
    model = engine.load(config, rank, ranks, at or port)
    seconds = time.perf_counter() - begin
    if after:
        after(config, model)
    state = engine.state(model)
    found = {"state": state, "lines": lines.clear(), "seconds": seconds, "modules": sorted(m for m in sys.modules if m.startswith("mxfp4_repack")),
             "bytes": live_bytes()}
    return found


def packed(directory, **extra):
    return {"load_format": "mxfp4_repack", "model_loader_extra_config": {"blob": directory, **extra}}


# Without a blob: there is none in or beside the model.
MADE = {"load_format": "mxfp4_repack"}
# The other tensors by the same loader, too: on a GPU that is the default.
ALL_MADE = {**MADE, "model_loader_extra_config": {"others": True}}


def taken(result):
    """Layers that came from a blob or were made from the checkpoint."""
    return sum(": taken from " in line or ": made from " in line for line in result["lines"])


def proven(result):
    return sum("own conversion equals" in line for line in result["lines"])


def is_error(result):
    return isinstance(result, tuple) and result[:1] == ("raised",)


def same_state(what, result, own, layers=3, first=False):
    """All layers come from the blob, and nothing differs from vLLM's own state."""
    if is_error(result) or is_error(own):
        return report(what, False, result if is_error(result) else own)
    differing = engine.differing(own["state"], result["state"])
    number = taken(result) + (proven(result) if first else 0)
    report(f"{what}: {taken(result)} layers taken, {proven(result)} proven, {len(own['state'])} entries, {len(differing)} differ",
           number == layers and not differing, f"{differing[:4]} {result['lines']}")


# Checks ---------------------------------------------------------------------------------------------

def discovery():
    from vllm.plugins import load_general_plugins
    from vllm.model_executor.model_loader import _LOAD_FORMAT_TO_MODEL_LOADER as formats

    load_general_plugins()
    return formats["mxfp4_repack"].__module__


def unused():
    """The plug-in is installed and not used."""
    import importlib

    from vllm.plugins import load_general_plugins
    begin = time.perf_counter()
    load_general_plugins()
    seconds = time.perf_counter() - begin
    oracle = importlib.import_module("vllm.model_executor.layers.fused_moe.oracle.mxfp4")
    wrapped = [name for name, value in vars(oracle).items() if name.startswith("convert_") and hasattr(value, "__wrapped__")]
    return {**loaded({}), "registering": seconds, "wrapped": wrapped}


def check_unused():
    begin = time.perf_counter()
    result = forked(unused)
    if is_error(result):
        return report("installed and unused", False, result)
    heavy = [m for m in result["modules"] if m.rpartition(".")[2] in ("hook", "build", "facts", "blob", "loader", "layer")]
    # The load format's own module is imported with vLLM's loaders; what reads blobs comes with its first use.
    report(f"installed and unused: {result['registering'] * 1000:.0f} ms to register, no line, no converter wrapped",
           not result["lines"] and not result["wrapped"], (result["lines"], result["wrapped"], heavy))
    return time.perf_counter() - begin


def check_backend(backend, arch="sm90", **arguments):
    """Load format with the default and the plain blob, then the environment's two stages."""
    engine.world.Scene.current.set(arch, engine.world.Scene.current.libs, {})
    own = forked(loaded, {"moe_backend": backend, **arguments})
    if is_error(own):
        return report(f"{backend} {arch}: vLLM's own load", False, own)
    name = f"{backend}-{arch}"
    ways = {compress: packed(blob(f"{name}-{compress}", "--compress", compress, arch=arch, backend=backend)) for compress in ("zstd", "none")}
    whole = {"zstd, others too": packed(blob(f"{name}-zstd", arch=arch, backend=backend), others=True), "no blob, others too": ALL_MADE}
    for way, extra in {**ways, "no blob": MADE, **whole}.items():
        result = forked(loaded, {"moe_backend": backend, **arguments, **extra})
        if not is_error(result) and proven(result):
            same_state(f"{name}, {way}, first start", result, own, first=True)
            result = forked(loaded, {"moe_backend": backend, **arguments, **extra})
        same_state(f"{name}, {way}", result, own)
        if "others" in way and not is_error(result):
            report(f"{name}, {way}: the loader read them", sum("other tensors" in line for line in result["lines"]) == 1, result["lines"])
    directory = blob(f"{name}-zstd", arch=arch, backend=backend)
    verified = forked(loaded, {"moe_backend": backend, **arguments, **packed(directory, verify="all")})
    report(f"{name}: verify all finds every layer equal", not is_error(verified) and proven(verified) == 3, verified if is_error(verified) else verified["lines"])
    return own


def rank_loads(ranks, rank, at, arguments):
    return loaded({"tensor_parallel_size": ranks, "distributed_executor_backend": "mp", **arguments}, rank=rank, ranks=ranks, at=at)


def check_ranks(what, ranks, arguments, *flags):
    global port
    directory = blob(what.replace(" ", "-"), *flags)
    outcomes = []
    for extra in ({}, packed(directory), packed(directory), MADE):
        port += 1
        children = [begun(rank_loads, ranks, rank, port, {**arguments, **extra}) for rank in range(ranks)]
        outcomes.append([collected(child) for child in children])
    for rank in range(ranks):
        same_state(f"{what}, rank {rank}", outcomes[2][rank], outcomes[0][rank])
        same_state(f"{what}, no blob, rank {rank}", outcomes[3][rank], outcomes[0][rank])


def reloaded(arguments, directory, sent=False):
    """A load and a reload of the weights in `directory`; what a load returns, and whose tensors moved."""
    places = []
    if sent:
        engine.play_gpu()

    def again(config, model):
        before = engine.addresses(model)
        engine.reload(config, model, directory, sent)
        after = engine.addresses(model)
        places.extend([len(before), [name for name in {**before, **after} if before.get(name) != after.get(name)]])
        open_files = [os.path.realpath(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")]
        places.append([path for path in open_files if path.endswith((".safetensors", ".zst"))])

    return {**loaded(arguments, after=again), "places": places}


def left_as_it_was(first, start, own):
    """The tensors beside the experts that vLLM's own reload leaves as they were, where the other checkpoint has other values."""
    layers = tuple(key.rpartition(":")[0] for key in start["state"] if key.endswith(": backend"))
    return {name for name in engine.differing(start["state"], own["state"])
            if not name.startswith(layers) and own["state"].get(name) == first["state"].get(name)}


def check_reload():
    """Another model's weights into a running one, and the same again: the state of a start with them, every tensor at its address.

    vLLM's own reload is run too, and a line says what it does. What this program does not reload is vLLM's as before.
    """
    other, stale = os.path.abspath(checkpoint("model-of-seed-2", seed=2)), set()
    for backend in ("marlin", "triton"):
        arguments = {"moe_backend": backend}
        start, first, own = forked(loaded, {**arguments, "model": other}), forked(loaded, arguments), forked(reloaded, arguments, other)
        if is_error(own):
            said = f"fails: {own[1]}"
        else:
            stale |= left_as_it_was(first, start, own)
            said = f"{len(engine.differing(start['state'], own['state']))} of {len(own['state'])} entries differ from a start, {len(own['places'][1])} moved"
        print(f"     reload of {backend}, vLLM's own: {said}; beside the experts it leaves {sorted(stale) or 'nothing'} as it was", flush=True)
        packed_blob = packed(blob(f"{backend}-sm90-zstd", backend=backend))
        ways = {"blob, the same": (packed_blob, "model", first), "blob, another": (packed_blob, other, start), "no blob, another": (MADE, other, start),
                "no blob, another, others too": (ALL_MADE, other, start)}
        for way, (extra, directory, want) in ways.items():
            check_reloaded(f"reload of {backend}, {way}", forked(reloaded, {**arguments, **extra}, os.path.abspath(directory)), want, first, stale)
        if os.environ.get("FAKE_CUDA"):
            check_reloaded(f"reload of {backend}, sent by a trainer", forked(reloaded, {**arguments, **MADE}, other, True), start, first, stale)


def check_reloaded(what, result, want, first, stale):
    """`stale`: what vLLM's own reload leaves as it was may stay so."""
    if is_error(result):
        return report(what, False, result)
    differing = [name for name in engine.differing(want["state"], result["state"])
                 if name not in stale or result["state"][name] != first["state"][name]]
    lines = [line for line in result["lines"] if "loaded again in place from" in line or "made from weights that were sent" in line]
    number, moved, still_open = result["places"]
    report(f"{what}: {len(want['state'])} entries, {len(differing)} differ; {number} addresses, {len(moved)} changed",
           not differing and not moved and not still_open and len(lines) == 1 and "3 layers" in lines[0],
           (differing[:5], moved[:5], still_open, result["lines"][-3:]))


def check_environment():
    """The second way: MXFP4_REPACK_BLOB, with raw experts read and dropped, and without reading them."""
    own, directory = forked(loaded, {}), blob("triton-sm90-zstd")
    stages = {"first stage": {}, "second stage": {"MXFP4_REPACK_SKIP_RAW": "1"}}
    for what, more in stages.items():
        for start in ("first", "second"):
            result = forked(loaded, {}, {"MXFP4_REPACK_BLOB": directory, **more})
            if is_error(result) or not proven(result):
                break
        same_state(f"environment, {what}", result, own)


def check_include_rest():
    """A model directory without raw experts cannot prove unknown code: it is served where the plug-in knows the code, else refused."""
    directory = os.path.abspath("whole")
    program("convert", "model", "-o", directory, "-q", "--arch", "sm90", "--moe-backend", "triton", "--revision", REVISION, "--include-rest")
    result = forked(loaded, {"model": directory, "load_format": "mxfp4_repack"})
    if is_error(result):
        return report("--include-rest directory, unknown code: an error", result[1] == "BlobRefused" and "verification" in result[2], result)
    same_state("--include-rest directory", result, forked(loaded, {}))


def revision_of(site):
    """The program's revision of the release in `site`."""
    (metadata,) = site.glob("vllm-*.dist-info")
    version = metadata.name.removesuffix(".dist-info").removeprefix("vllm-")
    listed = json.loads(subprocess.run([BIN, "list", "revisions", "--json"], capture_output=True, check=True).stdout)["revisions"]
    return next(row["revision"] for row in listed if row["revision"] in (version, f"vllm-{version}"))


def main():
    global REVISION
    import kinds
    import mismatches
    import serving
    site, only = pathlib.Path(sys.argv[1]).resolve(), set(sys.argv[2:])
    REVISION = revision_of(site)
    print(f"== {REVISION}", flush=True)
    engine.start(str(site), "sm90")
    checkpoint("model")
    engine.config_of(model="model")  # imports what every child needs
    import vllm.model_executor.model_loader  # noqa: F401

    def wanted(name):
        return not only or name in only

    report("the plug-in is found by vLLM's loader of plug-ins", forked(discovery) == "mxfp4_repack.vllm.load_format")
    if wanted("unused"):
        check_unused()
    if wanted("backends"):
        for backend, arch in (("triton", "sm90"), ("triton", "sm100"), ("marlin", "sm90")):
            check_backend(backend, arch)
        engine.world.Scene.current.set("sm90", engine.world.Scene.current.libs, {})
    if wanted("humming"):
        kinds.check_humming()
        engine.world.Scene.current.set("sm90", engine.world.Scene.current.libs, {})
    if wanted("mega"):
        kinds.check_mega()
    if wanted("ranks"):
        check_ranks("TP 2", 2, {}, "--tp-size", "2")
        check_ranks("EP 2", 2, {"enable_expert_parallel": True}, "--tp-size", "2", "--enable-expert-parallel")
    if wanted("reload"):
        check_reload()
    if wanted("environment"):
        check_environment()
    if wanted("rest"):
        check_include_rest()
    if wanted("methods"):
        kinds.check_methods()
    if "serve" in only:
        serving.check(sys.modules[__name__], int(os.environ.get("MXFP4_SEED", "1")), 200, 40)
    if wanted("mismatches"):
        mismatches.check(loaded)
    print(f"{REVISION}: {failures} failed", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    import row  # the module that other checks import
    sys.exit(row.main())
