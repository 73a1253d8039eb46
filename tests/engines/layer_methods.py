#!/usr/bin/env python3
"""Which method a release's own quantization config gives each layer's experts: groups and targets, exclusions, patterns, bits by layer.

usage: layer_methods.py VERSION... [--cache DIR] [--draw SEED COUNT] [--out FILE]

Draws quantization configs of the forms that llm-compressor, Quark and AutoRound write, executes each release's own choice of a config class, its
`from_config` and its choice and constructor of a method for the experts of four layers, in the faked worlds of world.py, and writes
testdata/engines/layer_methods.json.xz: {"wheels", "prefix", "experts", "rows": [{"quantization", "answers": {RELEASE: [ANSWER of each layer]}}]}, an
answer as config_keys.py has it. A release of which no layer of any config of a form is MXFP4 has no answers to that form. Needs README.md's Python.
"""
import copy
import importlib
import random

import config_keys
import harness

PREFIX, LAYERS, EXPERTS = "model.layers.{}.mlp.experts", 4, 4
BESIDE = ("model.layers.0.self_attn.o_proj", "model.layers.0.mlp.gate", "model.layers.0.mlp.shared_experts.down_proj")
PROJECTIONS = ("gate_proj", "up_proj", "down_proj")

WEIGHTS = {"num_bits": 4, "type": "float", "symmetric": True, "strategy": "group", "group_size": 32, "dynamic": False}
OTHERS = ({"num_bits": 8, "type": "float", "symmetric": True, "strategy": "channel", "dynamic": False},
          {"num_bits": 8, "type": "float", "symmetric": True, "strategy": "group", "group_size": 32, "dynamic": False},
          {"num_bits": 4, "type": "float", "symmetric": True, "strategy": "tensor_group", "group_size": 16, "dynamic": False})
FP8 = {"num_bits": 8, "type": "float", "symmetric": True, "strategy": "token", "dynamic": True}
INPUTS = (None, None, WEIGHTS | {"dynamic": True}, FP8, {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": True},
          FP8 | {"strategy": "group", "group_size": 32}, FP8 | {"strategy": "group", "group_size": 128}, FP8 | {"strategy": "tensor", "dynamic": False})
MX = {"dtype": "fp4", "qscheme": "per_group", "ch_axis": -1, "group_size": 32, "symmetric": None, "scale_format": "e8m0", "is_dynamic": False}
TENSOR = MX | {"dtype": "fp8_e4m3", "qscheme": "per_tensor", "group_size": None, "symmetric": True}
QUARK_WEIGHTS = (MX, MX, MX, MX, [MX], TENSOR, MX | {"dtype": "fp6_e3m2"}, MX | {"dtype": "fp8_e4m3"})
QUARK_INPUTS = (MX | {"is_dynamic": True}, MX | {"is_dynamic": True}, [MX | {"is_dynamic": True}], None, TENSOR, TENSOR | {"is_dynamic": True},
                MX | {"dtype": "fp6_e2m3", "is_dynamic": True}, TENSOR | {"qscheme": "per_channel"})


class Draws:
    """Configs, each from its own seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.a, self.b = sorted(self.random.sample(range(LAYERS), 2))

    def of(self, *values):
        return copy.deepcopy(self.random.choice(values))

    def chance(self, of_ten):
        return self.random.random() * 10 < of_ten

    def names(self, layer):
        return [f"{PREFIX.format(layer)}.{e}.{p}" for e in range(EXPERTS) for p in PROJECTIONS]

    def config(self):
        return self.of(self.compressed_tensors, self.compressed_tensors, self.quark, self.quark, self.auto_round)()

    # ---- compressed-tensors

    def targets(self):
        a, b = self.a, self.b
        return self.of(["Linear"], ["Linear"], ["re:.*mlp\\.experts\\..*"], [f"re:.*layers\\.{a}\\..*"], [f"re:.*layers\\.[{a}-{b}]\\.mlp\\..*"],
                       [f"re:model\\.layers\\.({a}|{b})\\.mlp\\.experts\\.\\d+\\.(gate|up|down)_proj$"], self.names(a), ["re:.*self_attn.*"],
                       ["re:.*(gate|up|down)_proj$"], ["re:.*down_proj"], ["re:^model\\.layers\\.\\d{1,2}\\.mlp\\.experts"], ["re:layers.*"],
                       ["RoutedExperts"], ["re:.*shared_expert.*"], ["LlamaAttention"], ["re:(?:.*\\.)?experts\\.\\d+\\.\\w+_proj"],
                       [f"re:(?!.*layers\\.{a}\\.).*mlp.*"])

    def ignored(self):
        a, b = self.a, self.b
        return self.of([], [], [f"re:.*layers\\.{a}\\..*"], [f"re:.*layers.{b}.mlp.*"], self.names(a), ["re:.*mlp.gate$"], ["re:.*self_attn.*"],
                       [PREFIX.format(a)], [f"re:.*layers\\.({a}|{b})\\..*experts.*"], ["re:visual.*"], ["re:.*down_proj"])

    def group(self):
        ours, weights, inputs = self.chance(6), copy.deepcopy(WEIGHTS), self.of(*INPUTS)
        if ours:
            for key in ("strategy", "symmetric", "dynamic"):
                if self.chance(1):
                    del weights[key]
            weights |= self.of({}, {}, {"scale_dtype": "torch.uint8"}, {"observer": None, "zp_dtype": None})
        else:
            weights = self.of(*OTHERS)
            if weights["strategy"] == "tensor_group":
                inputs = self.of(None, weights | {"dynamic": "local"})
        made = {"targets": self.targets(), "weights": weights, "input_activations": inputs, "output_activations": None}
        if made["targets"] == ["LlamaAttention"]:
            made["weights"] = None
        if ours and self.chance(5):
            made["format"] = "mxfp4-pack-quantized"
        return made

    def compressed_tensors(self):
        groups = {f"group_{i}": self.group() for i in range(self.of(1, 1, 2, 2, 3))}
        return {"quant_method": "compressed-tensors", "format": self.of("mxfp4-pack-quantized", "mixed-precision"), "config_groups": groups,
                "ignore": ["lm_head", *self.ignored()], "kv_cache_scheme": None}

    # ---- Quark

    def quark_module(self):
        return {"weight": self.of(*QUARK_WEIGHTS), "input_tensors": self.of(*QUARK_INPUTS), "output_tensors": None, "bias": None}

    def quark(self):
        a, b = self.a, self.b
        patterns = (f"*layers.{a}.*", PREFIX.format(a) + ".*", "*mlp.experts*", "*experts*", "*self_attn*", PREFIX.format(b) + ".0.gate_proj",
                    PREFIX.format(a), f"*layers.[{a}{b}].mlp*", "model.layers.?.mlp.experts*", "*mlp.gate", "*shared_experts*", f"model.layers.{a}*")
        exclude = self.of([], [], [f"re:.*layers.{a}.*"], [PREFIX.format(a)], [PREFIX.format(a) + ".0.gate_proj"], [PREFIX.format(a) + ".*.down_proj"],
                          [f"model.layers.{a}.mlp"], [f"*layers.{a}.*"], ["re:.*self_attn.*"], [f"re:.*layers\\.({a}|{b})\\.mlp\\.experts$"],
                          ["re:.*mlp.gate$"], [f"re:{PREFIX.format(b)}.0.*"])
        chosen = self.random.sample(patterns, self.of(0, 0, 1, 1, 2))
        return {"quant_method": "quark", "quant_mode": "eager_mode", "exclude": ["lm_head", *exclude], "global_quant_config": self.quark_module(),
                "layer_type_quant_config": {}, "layer_quant_config": {pattern: self.quark_module() for pattern in chosen},
                "export": {"kv_cache_group": [], "pack_method": "reorder", "weight_format": "real_quantized"}}

    # ---- AutoRound

    def auto_round(self):
        a, b = self.a, self.b
        names = (PREFIX.format(a), PREFIX.format(b), "lm_head", "mlp.experts", f"layers.{a}.mlp.experts", f".*layers\\.{a}\\..*", ".*experts.*",
                 f".*layers.{b}.mlp.*", ".*self_attn.*", f"model.layers.{a}.mlp.gate", f"layers.[{a}{b}]")
        extra = {self.of(*names): self.of({"bits": 16}, {"bits": 16, "data_type": "float"}, {"bits": 8}, {"bits": 4, "group_size": 32}, {"bits": 32})
                 for _ in range(self.of(0, 1, 1, 2))}
        bits = self.of(4, 4, 4, 8)
        made = {"quant_method": self.of("auto-round", "inc"), "bits": bits, "act_bits": bits, "group_size": 32, "data_type": "mx_fp", "sym": True,
                "act_data_type": "mx_fp", "act_group_size": 32, "act_sym": True, "act_dynamic": True, "packing_format": "auto_round:llm_compressor"}
        made |= {"extra_config": extra} if extra else {}
        if self.chance(3):
            made[self.of("block_name_to_quantize", "to_quant_block_names")] = self.of("model.layers", ["model.layers"], [f"model.layers.{a}."],
                                                                                     f"model.layers.{a},model.layers.{b}", None)
        made |= {"sym": False} if self.chance(0.5) else {}
        return made


class Release(config_keys.Release):
    def layers(self, quantization):
        if quantization["quant_method"] == "quark" and not self.reads_others(quantization):
            return ["stop"] * LAYERS
        return [self.answer({"model": config_keys.QWEN, "quantization": quantization}, PREFIX.format(index)) for index in range(LAYERS)]

    def reads_others(self, quantization):
        """Whether the release reads what Quark says of modules that stand beside experts; whether it has a kernel for them is not asked."""
        linear = importlib.import_module("vllm.model_executor.layers.linear").LinearBase
        made = linear.__new__(linear)
        self.torch.nn.Module.__init__(made)
        for name in BESIDE:
            try:
                self.classes["quark"].from_config(copy.deepcopy(quantization)).get_quant_method(made, name)
            except Exception as error:
                if "'list'" in str(error) or "Weight config: [" in str(error):
                    return False
        return True


def rows(seed, count):
    return [{"quantization": Draws(f"{seed} {number}").config()} for number in range(int(count))]


def answers(version, platform, cache, rows):
    release = Release(version, platform, cache)
    return {number: release.layers(row["quantization"]) for number, row in rows.items()}


def keep_taken(rows, version):
    """Takes away a release's answers to a form of which it calls no layer of any config MXFP4."""
    taken = {form_of(row) for row in rows if set(row["answers"].get(version, ())) - {"other", "stop"}}
    for row in rows:
        if form_of(row) not in taken:
            row["answers"].pop(version, None)


def form_of(row):
    return "auto-round" if row["quantization"]["quant_method"] == "inc" else row["quantization"]["quant_method"]


if __name__ == "__main__":
    harness.main(__file__, __doc__, "layer_methods.json.xz", rows, answers, lambda row: config_keys.platform_of(row["quantization"]),
                 draw=("layers", "400"), head={"prefix": PREFIX, "experts": EXPERTS}, keep=keep_taken)
