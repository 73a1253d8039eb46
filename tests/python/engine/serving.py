"""The line that the program says serves a blob, pasted into the engine's own parser of arguments: check of row.py.

Of drawn deployments, every line has to be parsed and to give the engine what convert was asked for. Those that two processes
can play are loaded, too: the engine of that line takes every layer on every rank, so that all of the plug-in's facts agree.
SGLang's lines are parsed only: serving.py ROOT [SEED], with BIN set, where ROOT has the files of a wheel of SGLang.
"""
import dataclasses
import json
import os
import random
import shlex
import subprocess
import sys
import types

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
SGLANG = {
    "--tp-size": ((None, 2, 4), "tp_size"),
    "--enable-expert-parallel": ((None, True), "ep_size"),
    "--enable-eplb": ((None, None, True), "enable_eplb"),
    "--num-redundant-experts": ((None, None, 4), "ep_num_redundant_experts"),
    "--enable-lora": ((None, None, None, True), "enable_lora"),
    "--moe-backend": (("triton_kernel", "marlin", "auto", "flashinfer_mxfp4"), "moe_runner_backend"),
}
MODELS = ("model", "mxfp4", "compressed-tensors W4A16", "AutoRound")
ARCHES = ("sm80", "sm89", "sm90", "sm100", "sm120")
ENVIRONMENT = ((), (), ("VLLM_MARLIN_INPUT_DTYPE=fp8",), ("VLLM_MXFP4_USE_MARLIN=1",))


def deployment(draw, flags=DRAWN):
    """(architecture, {flag of convert: value}, variables)"""
    drawn = {flag: draw.choice(values) for flag, (values, _) in flags.items()}
    return draw.choice(ARCHES), {flag: value for flag, value in drawn.items() if value is not None}, draw.choice(ENVIRONMENT)


def converted(program, directory, model, arch, flags, *more):
    """The line for a blob of this deployment; None if the program refuses it."""
    words = [word for flag, value in flags.items() for word in ([flag] if value is True else [flag, str(value)])]
    done = subprocess.run([program, "convert", model, "-o", directory, "-q", "--arch", arch, *words, *more], capture_output=True, text=True)
    if done.returncode == 4:
        return None
    if done.returncode:
        raise AssertionError(done.stderr)
    said = subprocess.run([program, "inspect", directory, "--serve"], capture_output=True, text=True, check=True).stdout
    return " ".join(said.replace("\\\n", " ").split()).replace(" MODEL", f" {model}", 1)


def split(line, command):
    """(variables, arguments behind the command)"""
    words = shlex.split(line)
    start = next(i for i, word in enumerate(words) if "=" not in word)
    assert words[start:start + len(command)] == command, line
    return dict(word.split("=", 1) for word in words[:start]), words[start + len(command):]


def differences(asked, drawn, has):
    """What the engine would not do as it was asked."""
    want = {drawn[flag][1]: value for flag, value in asked.items() if (flag, value) != ("--moe-backend", "auto")}
    return {name: (has[name], value) for name, value in want.items() if has[name] != value}


# SGLang ---------------------------------------------------------------------------------------------

def sglang_parser(root):
    import argparse
    sys.path.insert(0, root)
    sys.modules["IPython"] = sys.modules["IPython.display"] = types.SimpleNamespace(HTML=None, display=None)
    from sglang.srt.server_args import ServerArgs
    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)
    return parser


def check_sglang(root, seed, count=200):
    program, parser, draw = os.environ["BIN"], sglang_parser(root), random.Random(seed)
    model = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../testdata/ingest/gptoss_hf")
    found, refused, bad = 0, 0, []
    while found < count:
        arch, flags, _ = deployment(draw, SGLANG)
        line = converted(program, f"sglang-{found}", model, arch, flags, "--engine", "sglang")
        if line is None:
            refused += 1
            continue
        variables, words = split(line, ["python3", "-m", "sglang.launch_server"])
        has = vars(parser.parse_args(words))
        want = {**flags, "--enable-expert-parallel": flags.get("--tp-size", 1)} if "--enable-expert-parallel" in flags else flags
        wrong = differences(want, SGLANG, has) | ({} if variables["MXFP4_REPACK_BLOB"] == f"sglang-{found}" and has["model_path"] == model else {"place": line})
        bad += [(line, wrong)] if wrong else []
        found += 1
    print(f"SGLang: {found} lines parsed ({refused} drawn deployments refused), {len(bad)} wrong", *bad[:5], sep="\n")
    return bool(bad)


# vLLM -----------------------------------------------------------------------------------------------

def parsed(line):
    """(variables, the release's EngineArgs)"""
    from vllm.engine.arg_utils import EngineArgs
    from vllm.entrypoints.common.cli_args import make_arg_parser
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    variables, words = split(line, ["vllm", "serve"])
    arguments = make_arg_parser(FlexibleArgumentParser()).parse_args(words)
    arguments.model = arguments.model_tag
    return variables, EngineArgs.from_cli_args(arguments)


def answers(line):
    variables, arguments = parsed(line)
    return variables, {name: getattr(arguments, name) for name in ("model", "load_format", *(name for _, name in DRAWN.values()))}


def wrong(answer, model, flags, variables):
    if answer[0] == "raised":
        return answer[1:]
    told, has = answer
    given = dict(pair.split("=", 1) for pair in variables)
    return differences(flags, DRAWN, has) | ({} if (told, has["model"], has["load_format"]) == (given, model, "mxfp4_repack") else {"place": answer})


def served(line, rank, ranks, at):
    """Loads by the line's own arguments, with what an engine on this host needs."""
    import engine
    from settings import WITHOUT_KERNELS, known

    variables, arguments = parsed(line)
    os.environ.update(variables)
    lines = engine.messages()
    host = {"skip_tokenizer_init": True, "enforce_eager": True, "max_model_len": 256, "dtype": "bfloat16", "enable_lora": False,
            "distributed_executor_backend": "mp" if ranks > 1 else None, **known(WITHOUT_KERNELS)}
    arguments = dataclasses.replace(arguments, **host)
    engine.load(arguments.create_engine_config(), rank, ranks, at)
    return {"lines": lines.clear()}


def check(row, seed, count, loads):
    """Lines of `count` drawn deployments, of which the first `loads` that can be are loaded."""
    import engine
    import methods
    from processes import begun, collected, forked

    draw, found, loaded, refused, bad = random.Random(seed), 0, 0, 0, []
    for name in MODELS[1:]:
        methods.make(name.replace(" ", "-"), name)
    while found < count:
        model, (arch, flags, variables) = draw.choice(MODELS).replace(" ", "-"), deployment(draw)
        line = converted(row.BIN, f"served-{found}", model, arch, flags, "--revision", row.REVISION, *(word for pair in variables for word in ("--env", pair)))
        if line is None:
            refused += 1
            continue
        found += 1
        if difference := wrong(forked(answers, line), model, flags, variables):
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


if __name__ == "__main__":
    sys.exit(check_sglang(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1))
