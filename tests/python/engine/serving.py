"""The line that the program says serves a blob, pasted into the release's own parser of arguments: check of row.py.

Of drawn deployments, every line has to be parsed and to give the engine what convert was asked for. Those that two processes
can play are loaded, too: the engine of that line takes every layer on every rank, so that all of the plug-in's facts agree.
"""
import dataclasses
import json
import os
import random
import shlex
import subprocess

import engine
import methods
import row
from processes import begun, collected, forked
from settings import WITHOUT_KERNELS, known

# flag of convert -> values that are drawn; the engine's argument.
DRAWN = {
    "--tp-size": ((None, 2, 4), "tensor_parallel_size"),
    "--dp-size": ((None, None, 2), "data_parallel_size"),
    "--enable-expert-parallel": ((None, True), "enable_expert_parallel"),
    "--expert-placement": ((None, None, "round_robin"), "expert_placement_strategy"),
    "--all2all-backend": ((None, None, None, "deepep_high_throughput", "allgather_reducescatter"), "all2all_backend"),
    "--enable-lora": ((None, None, None, True), "enable_lora"),
    "--moe-backend": (("triton", "marlin", "auto"), "moe_backend"),
}
MODELS = ("model", "mxfp4", "compressed-tensors W4A16", "AutoRound")
ARCHES = ("sm80", "sm89", "sm90", "sm100", "sm120")
ENVIRONMENT = ((), (), ("VLLM_MARLIN_INPUT_DTYPE=fp8",), ("VLLM_MXFP4_USE_MARLIN=1",))


def deployment(draw):
    """(model, arch, {flag: value}, variables)"""
    flags = {flag: draw.choice(values) for flag, (values, _) in DRAWN.items()}
    return draw.choice(MODELS), draw.choice(ARCHES), {flag: value for flag, value in flags.items() if value is not None}, draw.choice(ENVIRONMENT)


def converted(number, model, arch, flags, variables):
    """The line for a blob of this deployment; None if the program refuses it."""
    words = [word for flag, value in flags.items() for word in ([flag] if value is True else [flag, str(value)])]
    words += [word for pair in variables for word in ("--env", pair)]
    directory = f"served-{number}"
    done = subprocess.run([row.BIN, "convert", model, "-o", directory, "-q", "--arch", arch, "--revision", row.REVISION, *words], capture_output=True, text=True)
    if done.returncode == 4:
        return None
    if done.returncode:
        raise AssertionError(done.stderr)
    said = subprocess.run([row.BIN, "inspect", directory, "--serve"], capture_output=True, text=True, check=True).stdout
    return " ".join(said.replace("\\\n", " ").split()).replace(" MODEL ", f" {model} ")


def parsed(line):
    """(variables, the release's EngineArgs)"""
    from vllm.engine.arg_utils import EngineArgs
    from vllm.entrypoints.common.cli_args import make_arg_parser
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    words = shlex.split(line)
    start = words.index("vllm")
    assert words[start + 1] == "serve", line
    arguments = make_arg_parser(FlexibleArgumentParser()).parse_args(words[start + 2:])
    arguments.model = arguments.model_tag
    return dict(word.split("=", 1) for word in words[:start]), EngineArgs.from_cli_args(arguments)


def answers(line):
    variables, arguments = parsed(line)
    return variables, {name: getattr(arguments, name) for name in ("model", "load_format", "model_loader_extra_config", *(name for _, name in DRAWN.values()))}


def wrong(line, model, flags, variables):
    """What the engine would not do as it was asked."""
    answer = forked(answers, line)
    if row.is_error(answer):
        return answer[1:]
    told, has = answer
    want = {name: flags.get(flag) for flag, (_, name) in DRAWN.items() if flags.get(flag) is not None}
    want |= {"model": model, "load_format": "mxfp4_repack"}
    found = {name: (has[name], value) for name, value in want.items() if has[name] != value and (name != "moe_backend" or value != "auto")}
    if told != dict(pair.split("=", 1) for pair in variables):
        found["variables"] = told
    return found


def served(line, rank, ranks, at):
    """Loads by the line's own arguments, with what an engine on this host needs."""
    variables, arguments = parsed(line)
    os.environ.update(variables)
    lines = engine.messages()
    host = {"skip_tokenizer_init": True, "enforce_eager": True, "max_model_len": 256, "dtype": "bfloat16", "enable_lora": False,
            "distributed_executor_backend": "mp" if ranks > 1 else None, **known(WITHOUT_KERNELS)}
    arguments = dataclasses.replace(arguments, **host)
    engine.load(arguments.create_engine_config(), rank, ranks, at)
    return {"lines": lines.clear()}


def check(seed, count, loads):
    """Lines of `count` drawn deployments, of which the first `loads` that can be are loaded."""
    draw, found, loaded, refused = random.Random(seed), 0, 0, 0
    for name in MODELS[1:]:
        methods.make(name.replace(" ", "-"), name)
    bad = []
    while found < count:
        model, arch, flags, variables = deployment(draw)
        model = model.replace(" ", "-")
        line = converted(found, model, arch, flags, variables)
        if line is None:
            refused += 1
            continue
        found += 1
        if difference := wrong(line, model, flags, variables):
            bad.append((line, difference))
        ranks = flags.get("--tp-size", 1)
        if loaded < loads and ranks <= 2 and "--dp-size" not in flags and flags["--moe-backend"] != "auto":
            loaded += 1
            engine.world.Scene.current.set(arch, engine.world.Scene.current.libs, {})
            row.port += 1
            children = [begun(served, line, rank, ranks, row.port) for rank in range(ranks)]
            for rank, result in enumerate(map(collected, children)):
                layers = 3 if model == "model" else methods.LAYERS
                if row.is_error(result) or row.taken(result) + row.proven(result) != layers:
                    bad.append((line, rank, json.dumps(result)[:1500]))
    engine.world.Scene.current.set("sm90", engine.world.Scene.current.libs, {})
    row.report(f"serve: {found} lines parsed ({refused} drawn deployments refused), {loaded} loaded, {len(bad)} wrong", not bad, "\n".join(map(str, bad[:5])))
