#!/usr/bin/env python3
"""A compiled vLLM on a GPU serves other models than gpt-oss, with this program's weights and with its own: equal weights, equal tokens.

    models_check.py --program MXFP4_REPACK --revision REVISION [--only EXPRESSION...] [--experts] [--work DIR] [--library FILE]
                    [--arguments JSON] [--report FILE]

vLLM is the one that this interpreter imports; REVISION names its release to the program. DEPLOYMENTS names the models: the published
sizes, few layers and experts, experts of random bytes. Each is started by vLLM alone, with the default blob, with the plain one, without a blob, and
by vLLM alone again, each time in a process of its own. Compared are the experts' state, what every expert layer's kernel makes of the same random
activations, and 6 prompts of 48 greedy tokens with their log-probabilities. Tensors beside the experts get random numbers as the model is created,
the same in every start, before the model's own code derives anything of them. Where the rest of a model cannot run here, its error
is printed, and states and kernels are compared alone. Prints a line for each start, exits 1 if one is not equal.
"""
import argparse
import concurrent.futures
import functools
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import zlib

import engine_check
import starts
from starts import BLOBS, NO_BLOB, report

ARCH, CASE_SECONDS, ALONE = "sm90", 420, engine_check.ALONE
TOKENS = (1, 6, 37)
AT_ONCE = threading.BoundedSemaphore(max(2, (os.cpu_count() or 2) * 3 // 4))
# DeepSeek-V4's layers without an indexer, which asks for packages beside vLLM; the first routes by tokens.
V4 = {"layer_types": ["sliding_attention"] * 2, "mlp_layer_types": ["hash_moe", "moe"], "topk_method": "noaux_tc"}
K3 = {"vision_config": {}}
TEXT_ONLY = {"attention_backend": None, "language_model_only": True, "enable_prefix_caching": False}
TP = {**TEXT_ONLY, "disable_custom_all_reduce": True, "distributed_executor_backend": "mp"}
# No kernels of Kimi-K3 from packages beside vLLM, no library that asks other ranks, which are not there, no kernels for sizes that do not come. What answers
# alike: Triton tunes once for all starts, since it chooses by time, and another choice rounds otherwise; and one stream.
ENVIRONMENT = {"VLLM_KIMI_K3_GEMM_AR": "0", "VLLM_DISABLE_PYNCCL": "1", "VLLM_DEEP_GEMM_WARMUP": "skip", "TRITON_CACHE_AUTOTUNING": "1",
               "VLLM_DISABLE_SHARED_EXPERTS_STREAM": "1"}
# label -> (what makes the checkpoint, more of its config, moe_backend, arguments of the engine). Of more ranks than one the last one's experts are loaded.
DEPLOYMENTS = {
    "Qwen3 MoE, compressed-tensors W4A8": ("compressed-tensors W4A8", {}, "auto", {}),
    "Qwen3 MoE, compressed-tensors W4A16": ("compressed-tensors W4A16", {}, "auto", {}),
    "Qwen3 MoE, AutoRound": ("AutoRound", {}, "auto", {}),
    "Qwen3 MoE, mxfp4": ("mxfp4", {}, "humming", {}),
    "Kimi-K3, MARLIN": ("Kimi-K3", K3, "marlin", TEXT_ONLY),
    "Kimi-K3, MARLIN, Triton's KDA": ("Kimi-K3", K3, "marlin", {**TEXT_ONLY, "kda_prefill_backend": "triton", "kda_decode_backend": "triton"}),
    "Kimi-K3, MARLIN, TP 16": ("Kimi-K3", K3, "marlin", {**TP, "tensor_parallel_size": 16}),
    "Kimi-K3, MARLIN, TP 32": ("Kimi-K3", K3, "marlin", {**TP, "tensor_parallel_size": 32}),
    "DeepSeek-V4-Flash, HUMMING": ("DeepSeek-V4-Flash", V4, "humming", {"attention_backend": None}),
    "DeepSeek-V4-Flash, MARLIN": ("DeepSeek-V4-Flash", V4, "marlin", {"attention_backend": None}),
}


def make_model(work, what, more):
    """The checkpoint's directory, unless it is there."""
    import cell_models
    import methods

    where = os.getcwd()
    os.chdir(work)
    try:
        if what in methods.QUANTIZATIONS:
            return os.path.abspath(methods.make(what.replace(" ", "-"), what, hidden=512, inter=512))
        with open(starts.ROOT / "tests/engines/cells.json", encoding="utf-8") as file:
            config = cell_models.reduced(json.load(file)["models"][what], 32)
        return cell_models.make(what, {**config, **more})
    finally:
        os.chdir(where)


# One start, in a process of its own -------------------------------------------------------------------

def fill(model):
    """Random numbers for every tensor of a model that is being created, by its name. Experts' bytes come from the checkpoint."""
    import torch

    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        if tensor.device.type == "meta" or tensor.dtype == torch.uint8 or ".rotary_emb." in name:
            continue
        draw = torch.Generator(tensor.device).manual_seed(zlib.crc32(name.encode()))
        if not tensor.dtype.is_floating_point:  # experts by token: of no token the same twice
            made = torch.rand(*tensor.shape[:-1], 32, generator=draw, device=tensor.device).argsort(-1)[..., : tensor.shape[-1]]
        elif tensor.dtype == torch.float8_e8m0fnu or "scale" in name:
            made = 2.0 ** torch.randint(-6, -3, tensor.shape, generator=draw, device=tensor.device)
        else:
            made = torch.randn(tensor.shape, generator=draw, device=tensor.device) * 0.05 + (tensor.dim() == 1)
        tensor.data.copy_(made.to(tensor.dtype))


def filled_at_creation():
    from vllm.model_executor.model_loader import base_loader

    create = base_loader.initialize_model

    def created(*arguments, **named):
        model = create(*arguments, **named)
        fill(model)
        return model

    base_loader.initialize_model = created


def kernels_of(config, model):
    """{layer and number of tokens: what the experts' kernel makes of random activations: a digest, whether it comes again, and is of numbers that differ}"""
    import expert_state
    import torch
    from vllm.forward_context import set_forward_context

    found = {}
    for (name, layer), tokens in itertools.product(expert_state.experts(model), TOKENS):
        draw = torch.Generator("cuda").manual_seed(zlib.crc32(name.encode()))
        sizes = layer.moe_config
        hidden = torch.randn(tokens, sizes.hidden_dim, generator=draw, device="cuda").bfloat16()
        weights, chosen = torch.rand(tokens, sizes.num_experts, generator=draw, device="cuda").topk(sizes.experts_per_token)
        with set_forward_context(None, config, num_tokens=tokens):
            made = [layer.quant_method.apply(layer, hidden.clone(), weights, chosen.int(), None, None).float() for _ in range(4)]
        found[f"{name}, {tokens} tokens"] = {"digest": zlib.crc32(made[0].cpu().numpy().tobytes()), "again": all(torch.equal(made[0], one) for one in made),
                                             "numbers": bool(made[0].isfinite().all()) and float(made[0].std()) > 0}
    return found


def model_alone(arguments):
    """The model and its config, without an engine around it."""
    import torch
    from vllm.config import set_current_vllm_config
    from vllm.distributed.parallel_state import ensure_model_parallel_initialized, init_distributed_environment
    from vllm.engine.arg_utils import EngineArgs
    from vllm.model_executor.model_loader import get_model
    from vllm.v1.worker.workspace import init_workspace_manager

    ranks = arguments.get("tensor_parallel_size", 1)
    if ranks > 1:
        import cell_world

        cell_world.alone(ranks - 1, ranks)
    config = EngineArgs(**arguments).create_engine_config()
    torch.cuda.set_device(0)
    init_workspace_manager(torch.device("cuda:0"))
    with set_current_vllm_config(config):
        init_distributed_environment(world_size=ranks, rank=ranks - 1, distributed_init_method=f"tcp://127.0.0.1:{20000 + os.getpid() % 20000}", local_rank=0)
        ensure_model_parallel_initialized(ranks, 1)
        return get_model(vllm_config=config), config


def run_case(spec):
    """{"state", "kernels", "generated"}, without the last where only the experts are asked for; {"error", "text"}."""
    import expert_state

    filled_at_creation()
    arguments = {**starts.engine_arguments(starts.ENGINE, spec), "model": spec["model"], "moe_backend": spec["backend"], "enforce_eager": True}
    if spec["blob"]:
        arguments.update(starts.load_format(spec["blob"]))
    try:
        if spec["experts"]:
            model, config = model_alone(arguments)
            asked = lambda question: question(model)  # noqa: E731
        else:
            from vllm import LLM

            llm = LLM(**arguments)
            config, asked = llm.llm_engine.vllm_config, lambda question: llm.apply_model(question)[0]
        found = {"state": {name: repr(value) for name, value in asked(expert_state.state).items()}, "kernels": asked(functools.partial(kernels_of, config))}
        return {**found, **({} if spec["experts"] else {"generated": starts.generated(llm)})}
    except Exception as error:
        import traceback

        traceback.print_exc()
        return engine_check.error_of(error)


# All of them ------------------------------------------------------------------------------------------

def started(label, way, blob, experts, arguments):
    """The result of one start."""
    what, _, backend, more = DEPLOYMENTS[label]
    spec = {"model": str(arguments.models[label]), "backend": backend, "blob": blob, "experts": experts, "without_kernels": False,
            "arguments": {**more, **arguments.arguments}}
    base = arguments.work / f"{label}-{way}{'-experts' * experts}".replace(", ", "-").replace(" ", "_")
    environment = {**engine_check.environment(arguments.work, arguments.library), **ENVIRONMENT, "MXFP4_REPACK": str(arguments.program)}
    with AT_ONCE, open(f"{base}.log", "w") as log:
        try:
            subprocess.run([sys.executable, __file__, "--case", json.dumps(spec), "--report", f"{base}.json"], stdout=log, stderr=log, timeout=CASE_SECONDS,
                           env=environment)
            found = json.loads(pathlib.Path(f"{base}.json").read_text())
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            found = engine_check.error_of(error)
    return {**found, "lines": [line for line in pathlib.Path(f"{base}.log").read_text().splitlines() if "mxfp4-repack:" in line]}


def same_tokens(want, found):
    """Whether two starts answer alike, log-probabilities too; and a word on it."""
    prompts, largest = starts.tokens_differ(want["generated"], found["generated"])
    text = f"{len(found['generated'])} prompts, {prompts} with other tokens, log-probabilities differ by {largest:.3g}"
    return not prompts and not largest and starts.finite(found["generated"]), text


def different(want, found, repeats):
    """What differs of two starts, "" if nothing does; and a word on how much was compared. Tokens are judged where vLLM alone repeats its own."""
    if "error" in found:
        return found["text"], found["error"]
    state = starts.states_differ(want["state"], found["state"])
    steady = [name for name, one in want["kernels"].items() if one["again"]]
    wrong = [name for name in steady if found["kernels"].get(name) != want["kernels"][name]]
    wrong += [name for name, one in found["kernels"].items() if not one["numbers"]]
    text = (f"{len(found['state'])} entries, {len(state)} differ; {len(steady)} of {len(want['kernels'])} answers of the experts' kernel come again, "
            f"{len(wrong)} differ")
    if "generated" in want:
        same, word = same_tokens(want, found)
        text += f"; {word}"
        wrong += ["tokens"] * (repeats and not same)
    return str([*state[:3], *wrong[:3]]) if state or wrong or not found["kernels"] else "", text


def check(label, arguments):
    """All starts of a deployment; {way: what is kept}"""
    _, _, backend, more = DEPLOYMENTS[label]
    ranks = more.get("tensor_parallel_size", 1)
    blobs = {way: str(starts.make_blob(arguments.work / f"{label}-{method}".replace(", ", "-").replace(" ", "_"), arguments.models[label], arguments,
                                       "--arch", ARCH, "--moe-backend", backend, "--tp-size", ranks, "--compress", method)) for way, method in BLOBS.items()}
    experts = ranks > 1 or arguments.experts
    if not experts:  # the first start fills the caches of compilers; where it fails, the experts run by themselves
        first = started(label, f"{ALONE}, filling caches", None, False, arguments)
        experts = "error" in first
        if experts:
            print(f"     {label}: {first['error']}: {first['text'][-300:]}", flush=True)
    own = started(label, ALONE, None, experts, arguments)
    if "error" in own:
        report(f"{label}, {ALONE}: {own['error']}", False, own["text"])
        return {ALONE: own}
    ways = {f"{ALONE} again": None, **blobs, NO_BLOB: NO_BLOB}
    with concurrent.futures.ThreadPoolExecutor(len(ways)) as pool:
        kept = {ALONE: own, **dict(zip(ways, pool.map(lambda way: started(label, way, ways[way], experts, arguments), ways)))}
    again = kept[f"{ALONE} again"]
    repeats = "generated" not in own or "error" not in again and same_tokens(own, again)[0]
    if not repeats:
        print(f"     {label}: {ALONE} does not repeat its tokens here, so they are not judged", flush=True)
    for way, blob in ways.items():
        found = kept[way]
        if "own conversion equals" in str(found["lines"]):  # the first start compares, the second takes
            found = kept[way] = started(label, way, blob, experts, arguments)
        wrong, text = different(own, found, repeats)
        taken, layers = sum(": taken from " in line or ": made from " in line for line in found["lines"]), len(own["kernels"]) // len(TOKENS)
        report(f"{label}, {way}: {f'{taken} of {layers} layers taken; ' if blob else ''}{text}", not wrong and (taken == layers or not blob), (wrong, found["lines"]))
    return {way: {key: value for key, value in found.items() if key != "state"} for way, found in kept.items()}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    starts.add_arguments(parser, layers=2, experts=32)
    parser.add_argument("--library", type=lambda text: pathlib.Path(text).resolve(), help="libmxfp4_repack.so.0, if it is not installed")
    parser.add_argument("--work", type=lambda text: pathlib.Path(text).resolve(), default=pathlib.Path("/tmp/models-check"))
    parser.add_argument("--only", nargs="*", default=[], metavar="EXPRESSION", help="deployments whose names match one of these")
    parser.add_argument("--experts", action="store_true", help="the experts' layers by themselves, no tokens")
    parser.add_argument("--case", type=json.loads, help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    if arguments.case:
        arguments.report.write_text(json.dumps(run_case(arguments.case)))
        os._exit(0)
    arguments.work.mkdir(parents=True, exist_ok=True)
    labels = [label for label in DEPLOYMENTS if not arguments.only or any(re.search(word, label) for word in arguments.only)]
    arguments.models = {label: make_model(arguments.work, *DEPLOYMENTS[label][:2]) for label in labels}
    with concurrent.futures.ThreadPoolExecutor(len(labels)) as pool:
        results = dict(zip(labels, pool.map(lambda label: check(label, arguments), labels)))
    return starts.finish(results, arguments.report)


if __name__ == "__main__":
    sys.exit(main())
