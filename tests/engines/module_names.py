#!/usr/bin/env python3
"""Which layers' experts a Quark config leaves out by names that a model's class may not have.

usage: module_names.py VERSION... [--cache DIR] [--draw SEED COUNT] [--out FILE]

Executes for drawn lists of `exclude` each release's own QuarkConfig.from_config, the renaming that the model's class asks for (hf_to_vllm_mapper), and its choice of a method for the experts of four layers,
in the faked worlds of world.py. Writes testdata/engines/module_names.json: {"rows": [{"architecture", "model_type", "exclude", "answers": {RELEASE: [LAYER...]}}]}, the layers that are left out. Needs README.md's Python.
"""
import copy
import importlib
import random
import types

import config_keys
import harness

LAYERS = 4
# (architecture, model_type, what the checkpoint calls a layer's experts, what the engine does where its class does not rename the checkpoint's name)
CLASSES = (("Qwen3MoeForCausalLM", "qwen3_moe", "model.layers.{}.mlp.experts", None),
           ("GlmMoeDsaForCausalLM", "glm_moe_dsa", "model.layers.{}.mlp.experts", None),
           ("DeepseekV3ForCausalLM", "deepseek_v3", "model.layers.{}.mlp.experts", None),
           ("MiniMaxM2ForCausalLM", "minimax_m2", "model.layers.{}.block_sparse_moe.experts", "model.layers.{}.mlp.experts"),
           ("Qwen3VLMoeForConditionalGeneration", "qwen3_vl_moe", "model.language_model.layers.{}.mlp.experts", None),
           ("Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe", "model.language_model.layers.{}.mlp.experts", None),
           ("Glm4vMoeForConditionalGeneration", "glm4v_moe", "model.language_model.layers.{}.mlp.experts", None),
           ("Glm5NextForConditionalGeneration", "glm5_next", "model.language_model.layers.{}.mlp.experts", None),
           ("Ernie4_5_VLMoeForConditionalGeneration", "ernie4_5_moe_vl", "model.layers.{}.mlp.experts", None),
           ("Qwen3OmniMoeForConditionalGeneration", "qwen3_omni_moe", "thinker.model.layers.{}.mlp.experts", None),
           ("MiMoV2OmniForCausalLM", "mimo_v2_omni", "model.layers.{}.mlp.experts", None),
           ("Qwen3_5MoeForCausalLM", "qwen3_5_moe_text", "model.layers.{}.mlp.experts", None),
           ("KimiK25ForConditionalGeneration", "kimi_k25", "language_model.model.layers.{}.mlp.experts", None),
           ("DeepseekV4ForCausalLM", "deepseek_v4", "layers.{}.ffn.experts", None))
BEFORE = ("model.", "model.language_model.", "language_model.model.", "language_model.", "llm.", "model.llm.", "thinker.model.", "")


def quantization(exclude):
    made = config_keys.quark(config_keys.MX | {"is_dynamic": True})
    return made | {"exclude": ["lm_head", *exclude], "layer_quant_config": {}}


def drawn(seed):
    """One row: names of experts, whole or parts, with any beginning, and patterns."""
    chance = random.Random(seed)
    architecture, model_type, module, _ = chance.choice(CLASSES)
    own, _, tail = module.partition("layers.{}")
    exclude = []
    for layer in chance.sample(range(LAYERS), chance.choice((1, 2, 2, 3))):
        before = chance.choice((own, *BEFORE))
        name = f"{before}layers.{layer}{tail}"
        regex = name.replace(".", "\\.")
        exclude += chance.choice(([name], [name], [f"{name}.0.gate_proj"], [f"{name}.{e}.{p}" for e in range(4) for p in ("gate_proj", "up_proj", "down_proj")],
                                  [f"{name}.*.down_proj"], [f"re:{regex}"], [f"re:{name}.*"], [f"re:.*layers\\.{layer}\\..*"], [f"{name}*"],
                                  [f"*layers.{layer}.*"], [f"{before}layers.{layer}"], [f"re:.*{tail[1:]}$"], [f"{before}layers.{layer}.mlp.gate"]))
    return {"architecture": architecture, "model_type": model_type, "exclude": exclude}


class Release(config_keys.Release):
    def __init__(self, version, platform, cache):
        super().__init__(version, platform, cache)
        self.registry = importlib.import_module("vllm.model_executor.models.registry").ModelRegistry
        self.mappers = {}

    def mapper(self, architecture):
        if architecture not in self.mappers:
            made = getattr(self.registry.models[architecture].load_model_cls(), "hf_to_vllm_mapper", None)
            self.mappers[architecture] = made.get_rename_mapper() if hasattr(made, "get_rename_mapper") else made
        return self.mappers[architecture]

    def left_out(self, row):
        """The layers whose experts the release does not quantize; None for a class that it lacks, or whose Quark exports another config class reads."""
        if row["architecture"] not in self.registry.models:
            return None
        _, _, module, engine = next(known for known in CLASSES if known[0] == row["architecture"])
        model = types.SimpleNamespace(model_type=row["model_type"])
        self.settings._set_config(self.case)
        self.settings.settings._current_vllm_config.model_config = types.SimpleNamespace(quantization_config=None, hf_config=model, hf_text_config=model)
        given = quantization(row["exclude"])
        made = self.classes[self.name(given, model)].from_config(copy.deepcopy(given))
        if "Quark" not in type(made).__name__:
            return None
        mapper = self.mapper(row["architecture"])
        if mapper is not None:
            made.apply_vllm_mapper(mapper)
        layers = []
        for layer in range(LAYERS):
            name = module.format(layer)
            if mapper is not None:
                (name,) = mapper.apply_list([name])
            method = made.get_quant_method(self.layer(), engine.format(layer) if engine else name)
            if "OCP_MX" not in type(method).__name__ and "Mxfp4" not in type(method).__name__:
                layers.append(layer)
        return layers


def rows(seed, count):
    return [drawn(f"{seed} {number}") for number in range(int(count))]


def answers(version, platform, cache, rows):
    release = Release(version, platform, cache)
    return {number: release.left_out(row) for number, row in rows.items()}


if __name__ == "__main__":
    harness.main(__file__, __doc__, "module_names.json", rows, answers, lambda row: "rocm", draw=("names", "240"))
