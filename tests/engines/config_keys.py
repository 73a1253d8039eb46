#!/usr/bin/env python3
"""What a release makes of a quantization config that lacks a key, or says another value: which method class serves the experts, or a stop.

usage: config_keys.py VERSION... [--cache DIR] [--out FILE]

Takes a config of each form that exporters write, changes one member, and executes each release's own choice of a config class, its `from_config`
and its choice and constructor of a method for routed experts, in the faked worlds of world.py. Writes testdata/engines/config_keys.json.xz:
{"wheels", "rows": [{"platform", "model", "quantization", "answers": {RELEASE: ANSWER}}]}; an answer is the class of the method where the experts are
MXFP4, "other" for another one or none, "stop" where the release raises. A release that does not take the config as it was has no answers to its
changes. Needs README.md's Python.
"""
import copy
import importlib
import json
import types

import grid
import harness
import wheels

PREFIX = "model.layers.0.mlp.experts"
ARCHES = {"cuda": "sm100", "rocm": "gfx950"}
ABSENT = object()
VALUES = (ABSENT, None, {}, [], False, True, "other")
# How weights are stored, which some releases do not look at, and what stands for no object.
LEFT_OUT = (("auto-round", "group_size"), ("quark", "layer_type_quant_config"))

MX = {"dtype": "fp4", "qscheme": "per_group", "ch_axis": -1, "group_size": 32, "symmetric": None, "scale_format": "e8m0", "is_dynamic": False}
TENSOR = MX | {"dtype": "fp8_e4m3", "qscheme": "per_tensor", "ch_axis": None, "group_size": None, "symmetric": True, "scale_format": None}
WEIGHTS = {"num_bits": 4, "type": "float", "symmetric": True, "strategy": "group", "group_size": 32, "dynamic": False}
FP8 = {"num_bits": 8, "type": "float", "symmetric": True, "strategy": "token", "dynamic": True}
QWEN = {"model_type": "qwen3_moe"}


def quark(inputs):
    module = {"weight": MX, "input_tensors": inputs, "output_tensors": None, "bias": None}
    return {"quant_method": "quark", "quant_mode": "eager_mode", "exclude": ["lm_head"], "global_quant_config": module, "layer_type_quant_config": {},
            "layer_quant_config": {"*self_attn*": module | {"weight": TENSOR}},
            "export": {"kv_cache_group": [], "pack_method": "reorder", "weight_format": "real_quantized"}}


def compressed_tensors(inputs):
    group = {"targets": ["Linear"], "weights": WEIGHTS, "input_activations": inputs, "output_activations": None, "format": "mxfp4-pack-quantized"}
    return {"quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized", "quantization_status": "compressed",
            "config_groups": {"group_0": group}, "ignore": ["lm_head"], "kv_cache_scheme": None, "sparsity_config": {}, "transform_config": {}}


AUTO_ROUND = {"quant_method": "auto-round", "bits": 4, "act_bits": 4, "group_size": 32, "data_type": "mx_fp", "sym": True, "act_data_type": "mx_fp",
              "act_group_size": 32, "act_sym": True, "act_dynamic": True, "packing_format": "auto_round:llm_compressor", "backend": "auto",
              "extra_config": {"lm_head": {"bits": 16}}, "block_name_to_quantize": "model.layers"}
BLOCKS = {"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3", "scale_fmt": "ue8m0", "weight_block_size": [128, 128]}
STORED = {"quant_method": "fp8", "activation_scheme": "dynamic", "store_dtype": "mxfp4", "weight_block_size": [128, 128], "ignored_layers": ["lm_head"],
          "modules_to_not_convert": ["lm_head"]}
# (platform, what the model says of itself, its quantization)
BASES = (*(("rocm", QWEN, quark(inputs)) for inputs in (MX | {"is_dynamic": True}, None, TENSOR, MX | {"dtype": "fp6_e2m3", "is_dynamic": True})),
         *(("cuda", QWEN, compressed_tensors(inputs)) for inputs in (None, FP8, WEIGHTS | {"dynamic": True})),
         ("cuda", QWEN, AUTO_ROUND), ("cuda", QWEN, STORED), ("cuda", {"model_type": "deepseek_v4"}, BLOCKS),
         ("cuda", {"model_type": "deepseek_v41"}, BLOCKS | {"weight_block_size": [32, 32]}),
         ("cuda", QWEN, {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}),
         ("cuda", {"model_type": "gpt_oss"}, {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}))


def paths(node, at=()):
    for key, value in node.items():
        yield (*at, key)
        if isinstance(value, dict):
            yield from paths(value, (*at, key))


def changed(quantization, path, value):
    """With one member changed; None where it is not there, or is what it was."""
    made = json.loads(json.dumps(quantization))
    at = made
    for key in path[:-1]:
        at = at.get(key) if isinstance(at, dict) else None
    if not isinstance(at, dict) or path[-1] not in at or (at[path[-1]] is value):
        return None
    if value is ABSENT:
        del at[path[-1]]
    else:
        at[path[-1]] = copy.deepcopy(value)
    return made


def left_out(quantization, path, value):
    if (quantization["quant_method"], path[-1]) in LEFT_OUT:
        return value is not ABSENT
    # Words that are taken letter by letter; lists at which other modules than the experts stop.
    if path[-1] == "exclude" and value == "other" or "*self_attn*" in path and value == []:
        return True
    return quantization["quant_method"] in ("auto-round", "compressed-tensors") and value in (True, "other")


def changes():
    """(number of the base, row): each member of each base with each value, and each specification as a list of one."""
    made = []

    def add(number, quantization):
        if quantization is not None:
            made.append((number, {"platform": BASES[number][0], "model": BASES[number][1], "quantization": quantization}))
    for number, (platform, _, base) in enumerate(BASES):
        add(number, base)
        for path in paths(base):
            for value in VALUES:
                if not left_out(base, path, value):
                    add(number, changed(base, path, value))
        for key in ("weight", "input_tensors") if platform == "rocm" else ():
            add(number, changed(base, ("global_quant_config", key), [base["global_quant_config"][key]]))
    return made


class Release:
    """One release's own choice on one platform."""

    def __init__(self, version, platform, cache):
        import world
        scene = world.start(wheels.site(version, cache), platform, ARCHES[platform])
        import decisions
        import torch
        self.torch, self.settings = torch, decisions.Release(scene)
        libs, env = (grid.ROCM_LIBS, grid.AITER) if platform == "rocm" else (grid.ALL_LIBS, {})
        self.case = grid.case((platform, ARCHES[platform]), grid.GENERIC, libs=libs, env=env, hidden=256, intermediate=256, num_experts=4, local_experts=4)
        scene.set(ARCHES[platform], libs, env)
        self.moe = self.settings.moe_config(self.case)
        try:
            self.experts = importlib.import_module("vllm.model_executor.layers.fused_moe.routed_experts").RoutedExperts
        except ImportError:  # up to 0.22
            self.experts = importlib.import_module("vllm.model_executor.layers.fused_moe.layer").FusedMoE
        # Its constructor asks for a kernel of weights that no case of ours has.
        importlib.import_module("vllm.model_executor.layers.fused_moe").UnquantizedFusedMoEMethod.__init__ = lambda self, *a, **k: None
        methods = importlib.import_module("vllm.model_executor.layers.quantization")
        self.classes = {}
        for name in methods.QUANTIZATION_METHODS:
            try:
                self.classes[name] = methods.get_quantization_config(name)
            except (ImportError, AttributeError):  # one whose package is absent
                pass

    def layer(self):
        made = self.experts.__new__(self.experts)
        self.torch.nn.Module.__init__(made)
        made.moe_config = self.moe
        made.ckpt_gate_proj_name, made.ckpt_up_proj_name, made.ckpt_down_proj_name = "gate_proj", "up_proj", "down_proj"
        return made

    def name(self, quantization, model):
        """The config class that the release takes in place of the one that the config names, as ModelConfig asks them."""
        for known in self.classes.values():
            try:
                other = known.override_quantization_method(quantization, None, hf_config=model)
            except TypeError as error:
                if "hf_config" not in str(error):  # older ones ask for no model
                    raise
                other = known.override_quantization_method(quantization, None)
            if other is not None:
                return other
        return quantization["quant_method"]

    def answer(self, row, prefix=PREFIX):
        quantization = copy.deepcopy(row["quantization"])
        model = types.SimpleNamespace(quantization_config=quantization, **row["model"])
        self.settings._set_config(self.case)
        self.settings.settings._current_vllm_config.model_config = types.SimpleNamespace(quantization_config=None, hf_config=model, hf_text_config=model)
        try:
            config = self.classes[self.name(quantization, model)].from_config(quantization)
            config.packed_modules_mapping = {"qkv_proj": ["q_proj", "k_proj", "v_proj"], "gate_up_proj": ["gate_proj", "up_proj"]}
            method = config.get_quant_method(self.layer(), prefix)
        except Exception:
            return "stop"
        name = type(method).__name__
        return name if "Mxfp4MoEMethod" in name or "OCP_MX" in name and method.weight_dtype == "mxfp4" else "other"


def keep_taken(rows, version):
    """Takes away a release's answers to changes of a config that it stops at unchanged, or does not know."""
    unchanged = {}
    for (number, _), row in zip(changes(), rows):
        if unchanged.setdefault(number, row["answers"].get(version)) in ("other", "stop"):
            row["answers"].pop(version, None)


def platform_of(quantization):
    """Where a config's method is asked: Quark's is AMD's."""
    return "rocm" if quantization["quant_method"] == "quark" else "cuda"


def answers(version, platform, cache, rows):
    release = Release(version, platform, cache)
    return {number: release.answer(row) for number, row in rows.items()}


if __name__ == "__main__":
    harness.main(__file__, __doc__, "config_keys.json.xz", lambda: [row for _, row in changes()], answers, lambda row: row["platform"], keep=keep_taken)
