"""vLLM's own CPU engine, kernels and all, serves blobs of this program: cpu_row.py SITE [CHECK...], with BIN and MXFP4_SOURCE set.

SITE holds an installed build of vLLM for CPUs; nothing of it is faked. The machine needs what the release's CPU backend needs: AVX-512
with BF16, from 0.28.0 on AMX. Where the release refuses the machine, that is compared with the program's answer, and no more is run.
Every engine runs in a process forked from one that has imported vLLM. Prints a line for each check; exit 1 if one failed.
"""
import functools
import importlib
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import time

import engine
import mismatches
import row
from processes import forked
from row import checkpoint, is_error, packed, program, proven, report, same_state, taken

CHECKS = ("tokens", "environment", "rest", "reload", "ranks", "check", "mismatches", "load")
PROMPTS = (3, 9, 17, 33, 50, 64)  # lengths
ORACLE = "vllm.model_executor.layers.fused_moe.oracle.mxfp4"
METHODS = "vllm.model_executor.layers.quantization.mxfp4"
CONVERTER = "convert_gpt_oss_weight_to_mxfp4_moe_kernel_format"
# The load figures are measured on gpt-oss-20b's shapes, with fewer layers.
BIG = ("--layers", os.environ.get("MXFP4_ENGINE_LAYERS", "4"), "--experts", "32", "--hidden", "2880", "--intermediate", "2880")


def blob(name, *flags, source="model"):
    if not os.path.exists(name):
        program("convert", source, "-o", name, "-q", "--target", "facts.json", "--revision", row.REVISION, *flags)
    return os.path.abspath(name)


# Engines --------------------------------------------------------------------------------------------

def settings(arguments):
    return {"model": "model", "skip_tokenizer_init": True, "enforce_eager": True, "max_model_len": 256, "enable_prefix_caching": False,
            "seed": 0, "dtype": "bfloat16", **arguments}


def served(arguments, environment=(), after=None):
    """One engine from start to tokens; {"state", "answers", "lines", "bytes"}, of rank 0 where there are several."""
    from vllm import LLM

    os.environ.update(environment)
    lines = engine.messages()
    if environment:
        from mxfp4_repack.vllm.environment import register_environment
        register_environment()
    served_model = LLM(**settings(arguments))
    if after:
        after(served_model)
    states = served_model.apply_model(engine.state)
    return {"state": states[0], "states": states, "answers": answers(served_model), "lines": lines.clear(), "bytes": row.live_bytes()}


def answers(served_model):
    """Greedy tokens of each prompt, with the log-probabilities of the best three."""
    from vllm import SamplingParams

    draw = random.Random(5)
    prompts = [{"prompt_token_ids": [draw.randrange(3, 512) for _ in range(length)]} for length in PROMPTS]
    wanted = SamplingParams(temperature=0, max_tokens=24, logprobs=3, ignore_eos=True, detokenize=False)
    made = served_model.generate(prompts, wanted, use_tqdm=False)
    return [(list(one.outputs[0].token_ids), [sorted((token, best.logprob) for token, best in place.items()) for place in one.outputs[0].logprobs])
            for one in made]


def same_answers(what, result, own):
    if is_error(result) or is_error(own):
        return report(f"{what}: tokens", False, result if is_error(result) else own)
    number = sum(len(tokens) for tokens, _ in own["answers"])
    report(f"{what}: {number} tokens and their log-probabilities", result["answers"] == own["answers"])


# Checks ---------------------------------------------------------------------------------------------

def check_tokens():
    for mode, arguments in (("eager", {}), ("torch.compile", {"enforce_eager": False})):
        own, again = forked(served, arguments), forked(served, arguments)
        same_answers(f"{mode}, vLLM's own, a second start", again, own)
        for compress in ("zstd", "none"):
            directory = blob(f"cpu-{compress}", "--compress", compress)
            result = forked(served, {**arguments, **packed(directory)})
            if not is_error(result) and proven(result):
                same_state(f"{mode}, {compress}, first start", result, own, first=True)
                result = forked(served, {**arguments, **packed(directory)})
            same_state(f"{mode}, {compress}", result, own)
            same_answers(f"{mode}, {compress}", result, own)
    verified = forked(served, packed(directory, verify="all"))
    report("verify all finds every layer equal", not is_error(verified) and proven(verified) == 3, verified if is_error(verified) else verified["lines"])


def check_environment():
    own, directory = forked(served, {}), blob("cpu-zstd")
    for what, more in {"first stage": {}, "second stage": {"MXFP4_REPACK_SKIP_RAW": "1"}}.items():
        for start in ("first", "second"):
            result = forked(served, {}, {"MXFP4_REPACK_BLOB": directory, **more})
            if is_error(result) or not proven(result):
                break
        same_state(f"environment, {what}", result, own)
        same_answers(f"environment, {what}", result, own)


def check_rest():
    directory = blob("whole", "--include-rest")
    own, result = forked(served, {}), forked(served, {"model": directory, "load_format": "mxfp4_repack"})
    if is_error(result):
        return report("--include-rest directory, unknown code: an error", result[1] == "BlobRefused" and "verification" in result[2], result)
    same_state("--include-rest directory", result, own)
    same_answers("--include-rest directory", result, own)


def check_reload():
    """vLLM's own reload of another checkpoint, after a load from a blob and after its own."""
    other = os.path.abspath(checkpoint("model-of-seed-2", seed=2))

    def reload(served_model):
        served_model.collective_rpc("reload_weights", kwargs={"weights_path": other})

    own, again, result = (forked(served, extra, (), reload) for extra in ({}, {}, packed(blob("cpu-zstd"))))
    if is_error(own):
        return report(f"reload: vLLM cannot, with a blob or without: {own[1]}", is_error(result) and result[1:] == own[1:], (own, result))
    if is_error(result):
        return report("reload", False, result)
    chance, differing = engine.differing(own["state"], again["state"]), engine.differing(own["state"], result["state"])
    fresh = forked(served, {"model": other})
    equal = "as a start of the new weights" if fresh["answers"] == own["answers"] else "not as a start of the new weights, vLLM's own neither"
    report(f"reload: {taken(result)} layers taken before, {len(own['state'])} entries, {len(differing)} differ after ({len(chance)} between vLLM's own); "
           f"answers {equal}", taken(result) == 3 and (chance or not differing) and result["answers"] == own["answers"],
           (differing[:5], result["lines"]))


def check_ranks():
    """Processes of vLLM's own; what they took is in their log."""
    for what, extra, flags in (("TP 2", {}, ("--tp-size", "2")),
                               ("EP 2", {"enable_expert_parallel": True}, ("--tp-size", "2", "--enable-expert-parallel"))):
        arguments = {"tensor_parallel_size": 2, "distributed_executor_backend": "mp", **extra}
        directory = blob(what.replace(" ", "-"), *flags)
        own = forked(served, arguments)
        before = os.path.getsize("engine.log") if os.path.exists("engine.log") else 0
        result = forked(served, {**arguments, **packed(directory)})
        with open("engine.log", encoding="utf-8", errors="replace") as log:
            log.seek(before)
            sums = re.findall(r"mxfp4-repack: (\d+) layers taken from .*, (\d+) converted", log.read())
        if is_error(own):
            report(f"{what}: vLLM cannot, with a blob or without: {own[2][:120]}", is_error(result), result)
            continue
        if is_error(result):
            report(what, False, result)
            continue
        differing = [len(engine.differing(*pair)) for pair in zip(own["states"], result["states"])]
        report(f"{what}: layers (taken, converted) of each rank {sums}, entries that differ {differing}",
               sums == [("3", "0")] * 2 and differing == [0, 0])
        same_answers(what, result, own)


def check_check():
    """mxfp4-repack-check in this environment."""
    ran = subprocess.run([sys.executable, "-m", "mxfp4_repack.check", "model"], capture_output=True, text=True, env={**os.environ, "MXFP4_REPACK": row.BIN})
    report(f"mxfp4-repack-check: {ran.stdout.splitlines()[-1] if ran.stdout else ran.stderr[-300:]}", ran.returncode == 0, ran.stdout[-600:])


def misfits():
    """(what differs, blob, more arguments of the engine)"""
    right, elsewhere = blob("cpu-zstd"), ("--platform", "cuda", "--arch", "sm90", "--moe-backend", "marlin")
    if not os.path.exists("m-cuda"):
        program("convert", "model", "-o", "m-cuda", "-q", "--revision", row.REVISION, *elsewhere)
    yield from mismatches.misfits(blob, right)
    yield "platform and backend", os.path.abspath("m-cuda"), {}
    yield "platform in the manifest", mismatches.edited(right, '"platform": "cpu"', '"platform": "xpu"'), {}
    yield "kind of processor", mismatches.edited(right, '"arch": "x86_64', '"arch": "aarch64'), {}


def check_mismatches():
    def unlike(result, own):
        return engine.differing(own["state"], result["state"]) + ["answers"] * (result["answers"] != own["answers"])
    mismatches.check(misfits(), served, unlike)


# Figures --------------------------------------------------------------------------------------------

def loaded_big(extra):
    """Seconds of get_model(), of all processors' work in it and of its experts; by how many MiB the process grew at most, and in the end."""
    own, spent = importlib.import_module(ORACLE), []
    original = getattr(own, CONVERTER)

    @functools.wraps(original)
    def timed(*args, **kwargs):
        begin = time.perf_counter()
        try:
            return original(*args, **kwargs)
        finally:
            spent.append(time.perf_counter() - begin)

    for name in (ORACLE, METHODS):
        setattr(importlib.import_module(name), CONVERTER, timed)
    lines = engine.messages()
    config = engine.config_of(**settings({"model": "big", **extra}), attention_backend=None, compilation_config={})
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    before, begin = resident("VmRSS"), time.perf_counter()
    worked = time.process_time()
    engine.load(config, port=row.port)
    seconds, worked = time.perf_counter() - begin, time.process_time() - worked
    experts = [float(line.rsplit(" ", 2)[1]) for line in lines.clear() if ": taken from " in line] or spent
    return {"seconds": seconds, "work": worked, "experts": sum(experts), "layers": len(experts), "MiB": (resident("VmHWM") - before) / 1024,
            "kept": (resident("VmRSS") - before) / 1024}


def resident(name):
    return int(re.search(rf"{name}:\s+(\d+)", pathlib.Path("/proc/self/status").read_text()).group(1))


def check_load():
    """Whole load of a few layers of real size from page cache: vLLM's own and both blobs in turn."""
    checkpoint("big", *BIG)
    ways = {"vLLM's own": {}, **{f"{name} blob": packed(blob(f"big-{compress}", "--compress", compress, source="big"))
                                 for name, compress in (("default", "zstd"), ("plain", "none"))}}
    rounds = {name: [] for name in ways}
    for number in range(6):
        for name, extra in ways.items():
            result = forked(loaded_big, extra)
            if is_error(result):
                return report(f"load, {name}", False, result)
            rounds[name] += [result] if number else []  # the first fills the page cache
    medians = {name: {key: statistics.median(one[key] for one in found) for key in found[0]} for name, found in rounds.items()}
    base = medians["vLLM's own"]
    for name, found in medians.items():
        shares = ", ".join(f"{key} {found[key] / base[key]:.3f}" for key in ("seconds", "work", "experts", "MiB", "kept"))
        spread = [one["seconds"] / base["seconds"] for one in rounds[name]]
        report(f"load, {name}: {found['seconds']:.2f} s, work {found['work']:.2f} s, experts {found['experts']:.2f} s, grew {found['MiB']:.0f} MiB, kept {found['kept']:.0f}; "
               f"shares: {shares}; seconds {min(spread):.3f} to {max(spread):.3f}", True)


def refused():
    """What the release says of this machine, or None."""
    try:
        served({})
        return None
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def main():
    site = pathlib.Path(sys.argv[1]).resolve()
    (metadata,) = site.glob("vllm*.dist-info")
    version = metadata.name.removesuffix(".dist-info").rpartition("-")[2].partition("+")[0]
    only = set(sys.argv[2:])
    row.REVISION = f"vllm-{version}"
    os.environ.update(VLLM_ENABLE_V1_MULTIPROCESSING="0", HF_HUB_OFFLINE="1", VLLM_CPU_KVCACHE_SPACE="1", VLLM_CPU_OMP_THREADS_BIND="nobind",
                      VLLM_ALLOW_INSECURE_SERIALIZATION="1")
    os.environ["PYTHONPATH"] = f"{site}:{os.environ.get('PYTHONPATH', '')}"  # of the ranks' processes
    sys.path.insert(0, str(site))
    with open("facts.json", "w", encoding="utf-8") as facts:
        subprocess.run([sys.executable, str(row.SOURCE / "scripts/probe-target")], stdout=facts, check=True)
    told = json.loads(pathlib.Path("facts.json").read_text())
    print(f"== vLLM {version} for CPUs, on {told['arch']}", flush=True)
    report(f"the probe finds vLLM {told.get('vllm')}", told.get("vllm", "").partition("+")[0] == version, told)
    checkpoint("model")
    import vllm.model_executor.model_loader  # noqa: F401
    import vllm.model_executor.models.gpt_oss  # noqa: F401
    import vllm.model_executor.models.registry as registry
    from vllm import LLM  # noqa: F401
    registry._run_in_subprocess = lambda inspect: inspect()  # seconds for each engine otherwise

    answer = json.loads(subprocess.run([row.BIN, "explain", "model", "--target", "facts.json", "--revision", row.REVISION, "--json"],
                                       capture_output=True, text=True).stdout)
    why = forked(refused)
    if why:
        row.report(f"vLLM refuses this machine ({why[-160:]}), and so does the program", answer.get("backend") is None, answer)
    else:
        report("vLLM and the program choose CPU", answer.get("backend") == "CPU", answer)
        for name in CHECKS:
            if not only or name in only:
                globals()[f"check_{name}"]()
    print(f"vLLM {version} for CPUs: {row.failures} failed", flush=True)
    return 1 if row.failures else 0


if __name__ == "__main__":
    sys.exit(main())
