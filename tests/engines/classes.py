#!/usr/bin/env python3
"""Drawn deployments of drawn model classes: what the wheels' own classes do, against what the program says of them.

usage: classes.py PROGRAM VERSION... [--draw SEED COUNT] [--cache DIR]

Draws a class of the release's registry, a platform, a quantization, sizes of parallelism, EPLB with redundant experts and adapters. In the faked worlds of
world.py the release's own class is imported and begun, each class of its that makes experts is made with stand-ins below it until it calls the
maker, and the platform, ParallelConfig and the adapters' wrapper are asked; the program's notes on the class must say the same. A question that some class
of the model's cannot be made for is counted apart, with the reason. Exit code 0: none differs. Needs README.md's Python.
"""
import argparse
import collections
import importlib
import inspect
import json
import os
import subprocess
import sys
import tempfile
import types

import config_keys
import grid
import models
import wheels

ARCHES = {"cuda": "sm90", "rocm": "gfx950", "xpu": "", "cpu": ""}
EXPERTS = 4
# What the program says, by what the engine does.
SAID = {"class": "raises NotImplementedError on this platform", "quantization": "does not take {method} on this platform",
        "adapters": "does not take adapters (LoRA)", "spread": "LoRA on experts that are spread over ranks", "ranks": "at least as many experts as tensor",
        "redundant": "hands no redundant experts on"}
CONFIG = {"model_type": "qwen3_moe", "hidden_size": 256, "intermediate_size": 512, "moe_intermediate_size": 256, "num_hidden_layers": 2,
          "num_experts": EXPERTS, "num_experts_per_tok": 2, "hidden_act": "silu", "num_attention_heads": 8, "num_key_value_heads": 8}
QUANTIZATIONS = {"compressed-tensors": config_keys.compressed_tensors(None), "quark": config_keys.quark(config_keys.MX | {"is_dynamic": True}),
                 "auto-round": config_keys.AUTO_ROUND, "mxfp4": {"quant_method": "mxfp4"}}
# The methods that some backend serves on a platform, or that the platform refuses.
SERVED = {"cuda": tuple(QUANTIZATIONS), "rocm": ("quark", "mxfp4"), "xpu": tuple(QUANTIZATIONS), "cpu": ("quark", "mxfp4")}


def drawn(text, registries):
    draw = grid.Draw(text)
    version = draw.of(sorted(registries))
    redundant = draw.of((0, 0, 2, 4))
    platform = draw.of(("cuda", "cuda", "rocm", "xpu", "cpu"))
    return {"class": draw.of(registries[version]), "version": version, "platform": platform, "method": draw.of(SERVED[platform]), "tp": draw.of((1, 1, 2, 4, 8)), "dp": draw.of((1, 1, 2)), "ep": draw.of((False, True)),
            "lora": draw.of((False, True)), "redundant": redundant,
            "all2all": draw.of(("allgather_reducescatter",) * 4 + ("deepep_high_throughput", "deepep_low_latency", "nixl_ep"))}


def flags(question):
    words = ["--revision", question["version"], "--tp-size", question["tp"], "--dp-size", question["dp"]]
    words += ["--arch", ARCHES[question["platform"]]] if ARCHES[question["platform"]] else ["--platform", question["platform"]]
    words += ["--env", "VLLM_ROCM_USE_AITER=1"] if question["platform"] == "rocm" else []
    words += ["--enable-lora"] if question["lora"] else []
    words += ["--enable-expert-parallel", "--all2all-backend", question["all2all"]] if question["ep"] else []
    words += ["--enable-eplb", "--num-redundant-experts", question["redundant"]] if question["ep"] and question["redundant"] else []
    return [str(word) for word in words]


# ---- the engine's classes

class Made(Exception):
    """A class came to its maker of experts."""


def maker(*_, **given):
    raise Made(given)


class Any(int):
    """A number that has every attribute."""

    def __new__(cls, value=8):
        return int.__new__(cls, value)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return value_of(name)

    def __call__(self, *a, **k):
        return Any()

    def __iter__(self):
        return iter([Any(int(self))] * 2)

    def __getitem__(self, i):
        return Any(int(self))

    def __len__(self):
        return 8

    def __enter__(self):
        return self

    __exit__ = __contains__ = lambda self, *a: False
    items = keys = lambda self: []
    startswith = lambda self, *a: False
    get = lambda self, name, default=None: default


class Mapper:
    __or__ = __ior__ = lambda self, other: self


ASKED = {}  # the question that is asked
# Members of configs whose value a class checks.
VALUES = {"hidden_act": "silu", "hidden_activation": "silu", "activation": "silu", "mlp_hidden_act": "silu", "rms_norm_eps": 1e-6, "model_type": "x",
          "architectures": ["X"], "topk_method": "greedy", "score_function": None, "scoring_func": "softmax", "moe_router_score_function": "softmax",
          "shared_expert_combination_strategy": "sum", "quantization_config": None, "quant_config": None, "swiglu_limit": None, "swiglu_limits": None,
          "moe_router_enable_expert_bias": False, "use_moe_router_bias": True, "gate_activation": "sigmoid", "norm_after_topk": True,
          "shared_expert_sink": True, "inference_moe_w13_interleaved": True, "moe_router_activation": "softmax", "use_sequence_parallel_moe": "split", "is_sequence_parallel": "split", "use_sequence_parallel": "split",
          "enable_eplb": "eplb", "enable_expert_parallel": "ep", "num_redundant_experts": "redundant", "tp_size": "tp", "tensor_parallel_size": "tp",
          "data_parallel_size": "dp", "pipeline_parallel_size": 1, "ep_size": 1, "world_size": 1, "dp_size": 1, "pcp_size": 1, "pp_size": 1,
          "device_group": Any(), "cpu_group": Any(), "moe_layer_start_index": Any(0)}


def value_of(name):
    low = name.lower()
    if low in VALUES:
        value = VALUES[low]
        return ASKED[value] if isinstance(value, str) and value in ASKED else value
    if "dtype" in low:
        return importlib.import_module("torch").bfloat16
    if low.endswith("config"):
        return Any()
    if "shared" in low and "expert" in low:
        return 1 if "num" in low or low.startswith("n_") else Any(64)
    if "expert" in low and ("num" in low or low.startswith("n_") or low.endswith("experts")):
        return Any(2 if any(word in low for word in ("per_tok", "top", "used")) else EXPERTS)
    if low.endswith("rank") and ("tp" in low or "ep" in low or low in ("rank", "rank_in_group")):
        return 0
    if low.startswith(("use_", "is_", "has_", "enable_")):
        return False
    return 1 if "group" in low else Any(64)


class Engine(config_keys.Release):
    """One release on one platform."""

    def __init__(self, version, platform, cache):
        config_keys.ARCHES = ARCHES
        super().__init__(version, platform, cache)
        import torch
        self.names, self.done, self.begun = models.Modules(wheels.site(version, cache), platform), {}, {}
        self.registry = importlib.import_module("vllm.model_executor.models.registry").ModelRegistry
        self.supports_lora = importlib.import_module("vllm.model_executor.models.interfaces").supports_lora
        self.platform = importlib.import_module("vllm.platforms").current_platform
        self.parallel = importlib.import_module("vllm.config.parallel").ParallelConfig
        self.wrapper = importlib.import_module("vllm.lora.layers.fused_moe").FusedMoEWithLoRA

        class Stub(torch.nn.Module):
            def __init__(self, *a, **k):
                super().__init__()

            def __setattr__(self, name, value):
                self.__dict__[name] = value

            def __getattr__(self, name):
                try:
                    return super().__getattr__(name)
                except AttributeError:
                    if name.startswith("__"):
                        raise
                    return value_of(name)
            register_parameter = register_buffer = lambda self, name, value, **k: setattr(self, name, value)
        self.stub = Stub
        for name in ("", ".layer"):  # some import it where they make experts
            vars(importlib.import_module("vllm.model_executor.layers.fused_moe" + name)).update(FusedMoEFactory=maker)
        torch.cuda.Stream = torch.cuda.Event = Stub
        importlib.import_module("vllm.triton_utils").triton.Config = lambda *a, **k: types.SimpleNamespace(num_stages=1, num_warps=1, kwargs={})
        # Operators that modules name while they are imported.
        torch._ops._OpNamespace.__getattr__ = named_operator(torch._ops._OpNamespace.__getattr__)

    def stand_ins(self, module, own):
        """What a class's constructor calls, stood in for; returns what was there."""
        before, module_class = {}, self.torch.nn.Module
        for name, value in list(vars(module).items()):
            origin, new = getattr(value, "__module__", None) or "", None
            if name in models.MAKERS:
                new = maker
            elif name == "get_tensor_model_parallel_world_size":
                new = lambda: ASKED["tp"]
            elif name in ("get_tensor_model_parallel_rank", "extract_layer_index"):
                new = lambda *a: 0
            elif name.startswith("get_current_vllm_config") or name.startswith("get_") and name.endswith("_group") or name == "get_fuser":
                new = lambda *a, **k: Any()
            elif name == "MoEBlockFuser":  # whether it can take a block of transformers' in whole: yes
                new = Any()
            elif isinstance(value, type) and value is not own and issubclass(value, module_class) and origin.startswith("vllm."):
                new = self.stub
            elif inspect.isfunction(value) and origin.startswith("vllm.distributed"):
                new = lambda *a, **k: Any()
            if new is not None:
                before[name] = value
                setattr(module, name, new)
        return before

    def arguments(self, init, key):
        given = {}
        for name, parameter in list(inspect.signature(init).parameters.items())[1:]:
            if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                continue
            known = {"prefix": "model.layers.3.mlp", "layer_name": "model.layers.3.mlp", "layer_id": 3, "layer_idx": 3, "layer_index": 3, "quant_config": None}
            own = name in ("enable_eplb", "num_redundant_experts", "parallel_config", "num_experts") or "sequence_parallel" in name and self.tells(key, name)
            if name in known or parameter.default is parameter.empty or own:
                given[name] = known[name] if name in known else value_of(name)
        return given

    def tells(self, key, name):
        """Whether a class of the module hands this argument on, not only False."""
        module = self.names.get(key[0])
        return any(getattr(node, "arg", None) == name and models.ast.unparse(node.value) != "False"
                   for tree in module.classes.values() for node in models.walk(tree, self.names.platform) if isinstance(node, models.ast.keyword))

    def make(self, key):
        """What a class hands to its maker, or the error that it stops with."""
        own = getattr(importlib.import_module(key[0]), key[1])
        folders = {sys.modules[base.__module__] for base in own.__mro__ if base.__module__.startswith("vllm.") and "models" in base.__module__}
        before = [(module, self.stand_ins(module, own)) for module in folders]
        module_class = self.torch.nn.Module
        made = object.__new__(own if issubclass(own, module_class) else type(key[1], (own, module_class), {}))
        module_class.__init__(made)
        try:
            if hasattr(own, "recursive_replace"):  # of transformers' models, which exist by then
                made.__dict__.update(hf_to_vllm_mapper=Mapper(), vllm_config=Any(), text_config=Any(), config=Any(), model_config=Any(), parallel_config=Any(), quant_config=None)
                made.model = self.torch.nn.ModuleDict({"mlp": self.torch.nn.ModuleDict({"experts": self.torch.nn.ModuleList([self.torch.nn.Linear(1, 1)])})})
                made.recursive_replace()
            else:
                own.__init__(made, **self.arguments(own.__init__, key))
            return "other", "no maker was called"
        except Made as made_:
            return "made", made_.args[0]
        except Exception as error:
            return "raised", f"{type(error).__name__}: {error}"
        finally:
            for module, values in before:
                vars(module).update(values)

    def begin(self, architecture):
        """Whether the class can be imported and begun; (class, None), or (None, why not)."""
        if architecture not in self.begun:
            class Asked(Exception):
                pass

            class Config:
                def __getattr__(self, name):
                    raise Asked
            try:
                cls = self.registry.models[architecture].load_model_cls()
                needs = [n for n, p in list(inspect.signature(cls.__init__).parameters.items())[1:]
                         if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL) and p.default is p.empty]
                try:
                    cls.__init__(object.__new__(cls), **{name: Config() for name in needs})
                except NotImplementedError:
                    raise
                except Exception:
                    pass
                self.begun[architecture] = cls, None
            except NotImplementedError:
                self.begun[architecture] = None, "class"
            except Exception as error:
                self.begun[architecture] = None, f"{type(error).__name__}: {error}"
        return self.begun[architecture]

    def takes(self, method):
        for word in models.METHODS[method]:
            try:
                self.platform.verify_quantization(word)
                return True
            except ValueError:
                pass
        return False

    def answer(self, question):
        """What the engine does, of SAID; or why it is not known."""
        cls, why = self.begin(question["class"])
        if cls is None and why != "class":
            return {"unknown": why}
        found = set() if self.takes(question["method"]) else {"quantization"}
        if cls is None:
            return {"found": sorted({"class"} | found)}
        if question["lora"] and not self.supports_lora(cls):
            found.add("adapters")
        eplb = bool(question["ep"] and question["redundant"])
        sizes = types.SimpleNamespace(all2all_backend=question["all2all"], enable_expert_parallel=question["ep"], tensor_parallel_size=question["tp"],
                                      data_parallel_size=question["dp"])
        ASKED.update(tp=question["tp"], dp=question["dp"], ep=question["ep"], eplb=eplb, redundant=question["redundant"] if eplb else 0,
                     split=self.parallel.use_sequence_parallel_moe.fget(sizes))
        VALUES["lora_config"] = Any() if question["lora"] else None
        state = (*ASKED.values(), question["lora"])
        handed = []
        for key in self.names.reached(*self.names.registry[question["class"]]):
            if not self.names.look(key)[1]:
                continue
            if (key, state) not in self.done:
                self.done[key, state] = self.make(key)
            kind, made = self.done[key, state]
            if kind == "raised" and made.startswith("ValueError: Tensor parallel size"):
                found.add("ranks")
            elif kind != "made":
                return {"unknown": f"{key[1]}: {made[:110]}"}
            else:
                handed.append(made)
        if "ranks" in found:  # the adapters' wrapper is not reached
            return {"found": sorted(found - {"redundant"})}
        use_ep = question["ep"] and question["tp"] * question["dp"] > 1
        for made in handed:
            if eplb and (made.get("num_redundant_experts") != question["redundant"] or not made.get("enable_eplb")):
                found.add("redundant")
            parallel = types.SimpleNamespace(all2all_backend=question["all2all"], is_sequence_parallel=bool(made.get("is_sequence_parallel")))
            try:
                if question["lora"]:
                    self.wrapper._ep_check(types.SimpleNamespace(use_ep=use_ep, moe_config=types.SimpleNamespace(moe_parallel_config=parallel),
                                                                 base_layer=types.SimpleNamespace(use_ep=use_ep)))
            except AssertionError:
                found.add("spread")
        return {"found": sorted(found)}


def named_operator(found):
    def run(space, name):
        try:
            return found(space, name)
        except AttributeError:
            if name.startswith("__") or not space.name.startswith("_"):
                raise
            return Any()
    return run


# ---- the program

def said(program, question, folder):
    """What the program says, of SAID; None: no backend serves the method there, so that no class is asked."""
    config = {**CONFIG, "architectures": [question["class"]], "quantization_config": QUANTIZATIONS[question["method"]]}
    with open(os.path.join(folder, "config.json"), "w") as out:
        json.dump(config, out)
    ran = subprocess.run([program, "explain", folder, "--json", *flags(question)], capture_output=True, text=True)
    answer = json.loads(ran.stdout)
    if not answer.get("backend"):
        return None
    text = "; ".join([*answer["notes"], (answer.get("error") or {}).get("message") or ""])
    found = {word for word, words in SAID.items() if words.format(method=question["method"]) in text}
    # Where a class is not begun, or stops, what comes after it is not known.
    return sorted(found - ({"spread", "redundant"} if "ranks" in found else set()) if "class" not in found else found & {"class", "quantization"})


def ask_engine(version, platform, questions, cache):
    command = [sys.executable, os.path.abspath(__file__), "-", version, "--cache", cache, "--platform", platform]
    ran = subprocess.run(command, input=json.dumps(questions), capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"{version} {platform}: {ran.stderr[-2000:]}")
    return json.loads(ran.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("versions", nargs="+")
    parser.add_argument("--cache", default=wheels.default_cache())
    parser.add_argument("--draw", nargs=2, metavar=("SEED", "COUNT"), default=("classes", "2000"))
    parser.add_argument("--platform", help="one release in this process, questions from the standard input")
    arguments = parser.parse_args()
    if arguments.platform:
        os.environ["VLLM_LOGGING_LEVEL"] = "CRITICAL"
        questions = json.load(sys.stdin)
        engine = Engine(arguments.versions[0], arguments.platform, arguments.cache)
        print("\n" + json.dumps([engine.answer(question) for question in questions]))
        return 0
    registries = {}
    for version in arguments.versions:
        names = models.Modules(wheels.site(version, arguments.cache))
        registries[version] = sorted(name for name in names.registry if names.abilities(name) is not None)
    seed, count = arguments.draw
    parts = collections.defaultdict(list)
    for number in range(int(count)):
        question = drawn(f"{seed} {number}", registries)
        parts[question["version"], question["platform"]].append(question)
    equal, differ, unserved, unknown = 0, 0, 0, collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for (version, platform), questions in sorted(parts.items()):
            for question, answer in zip(questions, ask_engine(version, platform, questions, arguments.cache)):
                if "unknown" in answer:
                    unknown[answer["unknown"]] += 1
                    continue
                program = said(arguments.program, question, folder)
                if program is None:
                    unserved += 1
                elif program == answer["found"]:
                    equal += 1
                else:
                    differ += 1
                    print(json.dumps(question), "engine:", answer["found"], "program:", program, flush=True)
            print(version, platform, len(questions), flush=True)
    for reason, times in unknown.most_common():
        print(f"not made, {times}: {reason}")
    print(f"{equal} equal, {differ} differ, {unserved} of methods that no backend serves there, {sum(unknown.values())} of classes that were not made")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
