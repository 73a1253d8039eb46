"""Checks of row.py: method classes of other checkpoints than gpt-oss's, HUMMING, and mega MoE."""
import itertools
import json
import os
import sys

import engine
import mega
import methods
import row
from processes import forked
from row import MADE, blob, check_backend, is_error, loaded, packed, program, proven, report, same_state, taken


def check_methods():
    """Method classes of other checkpoints: all layers from the blob, or none and a line that says why; never vLLM's state changed.

    A blob that the program refuses to make for what the checkpoint says is made of its twin, which says W4A16.
    """
    for (quantization, twin), (backend, arch) in itertools.product(methods.TWINS.items(), (("triton", "sm90"), ("marlin", "sm90"), ("auto", "sm100"))):
        if arch == "sm100" and not quantization.startswith(("compressed-tensors", "AutoRound")):
            continue  # its point is CUTLASS, which takes multiples of 128 only
        sizes = {"hidden": 256, "inter": 384} if arch == "sm100" else {}
        model = os.path.abspath(methods.make(f"qwen-{quantization}-{arch}".replace(" ", "-"), quantization, **sizes))
        engine.world.Scene.current.set(arch, engine.world.Scene.current.libs, {})
        name = f"{quantization}, {backend}, {arch}"
        own = forked(loaded, {"model": model, "moe_backend": backend})
        if is_error(own):
            report(f"{name}: vLLM refuses it itself: {own[1]}: {own[2].strip().splitlines()[-1][-110:]}", True)
            continue
        classes = sorted({value for key, value in own["state"].items() if key.endswith(": method")}) or ["no class that asks the selector"]
        source, extra, said = model, {}, ""
        try:
            directory = blob(f"b-{len(os.listdir('.'))}", source=source, backend=backend, arch=arch)
        except AssertionError as error:
            said = f"; the program refuses ({str(error).strip().splitlines()[-1][-110:]}), {twin}'s blob"
            source, extra = methods.make(f"qwen-{twin}-{arch}".replace(" ", "-"), twin, **sizes), {"source": "trust"}
            directory = blob(f"b-{len(os.listdir('.'))}", source=source, backend=backend, arch=arch)
        starts = {"first start": packed(directory, **extra), "second start": packed(directory, **extra),
                  "no blob, first start": MADE, "no blob, second start": MADE}
        done = ""
        for way, how in starts.items():
            if done and way.startswith(done):  # nothing was left to prove
                continue
            result = forked(loaded, {"model": model, "moe_backend": backend, **how})
            if is_error(result):
                report(f"{name} ({', '.join(classes)}){said}, {way}: {result[1]}: {result[2][-150:]}", result[1] in ("BlobRefused", "BlobError"), result)
                break
            differing = engine.differing(own["state"], result["state"])
            number = taken(result) + proven(result)
            reasons = [line.split("converts it: ")[-1][:130] for line in result["lines"] if "vLLM converts" in line or "no MXFP4 experts" in line]
            report(f"{name} ({', '.join(classes)}){said}, {way}: {taken(result)} taken, {proven(result)} proven, {len(own['state'])} entries, "
                   f"{len(differing)} differ; {reasons[0] if reasons else 'no line of a fall-back'}",
                   not differing and (number == methods.LAYERS or not number and reasons), (differing[:4], result["lines"]))
            done = "" if proven(result) else way.rpartition("first")[0] + "second" if "first" in way else ""


def check_humming():
    """HUMMING, where the package is at hand: of gpt-oss, and of a generic model."""
    if engine.humming_pin(sys.argv[1]) is None:
        return print("skip HUMMING: tests/engines keeps no humming-kernels that this release pins", flush=True)
    check_backend("humming")
    model = os.path.abspath(methods.make("qwen-mxfp4", "mxfp4"))
    for activation, said in {"BF16": None, "FP8 in blocks of 128": {"moe": {"activation": "fp8_per_block_dynamic"}}}.items():
        arguments = {"model": model, "moe_backend": "humming", **({"quantization_config": said} if said else {})}
        flags = ("--quantization-config", json.dumps(said)) if said else ()
        directory = blob(f"qwen-humming-{activation}".replace(" ", "-"), *flags, source=model, backend="humming")
        own = forked(loaded, arguments)
        for way, extra in {"blob": packed(directory), "no blob": MADE}.items():
            same_state(f"generic model, humming, {activation} activations, {way}", forked(loaded, {**arguments, **extra}), own, layers=methods.LAYERS)


def mega_loaded(whose, *arguments):
    return mega.loaded(*arguments, engine.messages(), whose)


def mega_proved(whose, *arguments):
    """The same after a start that compared what vLLM converted, where the code is not known."""
    if (whose == mega.AITER or not mega.loads_ready()) and arguments[-1] is not None:
        first = forked(mega_loaded, whose, *arguments)
        report(f"  the first start compares: {first['lines'][-1][-110:] if not is_error(first) else first}",
               not is_error(first) and any("equals" in line for line in first["lines"]), first)
    return forked(mega_loaded, whose, *arguments)


def check_mega():
    """Mega MoE's classes; 48 tensors are a model's, and none is read. Up to 0.32 they convert what they load."""
    classes = (mega.DEEPSEEK, mega.KIMI) if mega.has_kimi() else (mega.DEEPSEEK,)
    engine.world.Scene.current.set("sm100", engine.world.Scene.current.libs, {})
    model = mega.make("mega")
    for ranks in (1, 2):
        flags = ("--tp-size", ranks, "--enable-expert-parallel")
        program("convert", model, "-o", f"mega-{ranks}", "-q", "--arch", "sm100", "--moe-backend", "deep_gemm_mega_moe", "--revision", row.REVISION, *flags)
        ways = {"blob": os.path.abspath(f"mega-{ranks}"), "no blob": ""}
        for rank, (way, directory), whose in itertools.product(range(ranks), ways.items(), classes):
            own, result = (mega_proved(whose, model, rank, ranks, *how) for how in ((None,), (directory,)))
            same_state(f"mega MoE of {whose}, rank {rank} of {ranks}, {way}", result, own, layers=mega.LAYERS)
            if not is_error(result):
                report(f"  {own['read']} tensors read by vLLM, {result['read']} with the plug-in", result["read"] == 0, result["lines"])
    engine.world.Scene.current.set("sm90", engine.world.Scene.current.libs, {})
