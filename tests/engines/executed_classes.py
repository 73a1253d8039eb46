#!/usr/bin/env python3
"""What a release's own model classes do on one platform, executed: for classes.py, which draws the questions.

usage: executed_classes.py VERSION PLATFORM [--cache DIR]     questions on the standard input, answers as the last line

In the faked worlds of world.py the class is imported and begun, each class of its that makes experts is made with stand-ins below it
until it calls the maker, and the platform, ParallelConfig and the adapters' wrapper are asked.
"""
import argparse
import importlib
import inspect
import json
import os
import sys
import types

import config_keys
import models
import wheels

ARCHES = {"cuda": "sm90", "rocm": "gfx950", "xpu": "", "cpu": ""}
EXPERTS = 4


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


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("version")
    parser.add_argument("platform")
    parser.add_argument("--cache", default=wheels.default_cache())
    arguments = parser.parse_args()
    os.environ["VLLM_LOGGING_LEVEL"] = "CRITICAL"
    questions = json.load(sys.stdin)
    engine = Engine(arguments.version, arguments.platform, arguments.cache)
    print("\n" + json.dumps([engine.answer(question) for question in questions]))


if __name__ == "__main__":
    main()
