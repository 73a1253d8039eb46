#!/usr/bin/env python3
"""What a release makes of configs as they were published: the method class of each layer's experts.

usage: published_configs.py VERSION... [--cache DIR]

Executes each release's own choice of a config class, its `from_config`, the renaming of modules that the model's class asks for
(hf_to_vllm_mapper), and its choice and constructor of a method for the experts of every layer, in the faked worlds of world.py. The configs lie in
testdata/engines/published_configs.json, where the answers go: {RELEASE: {ANSWER: [FIRST-LAST, ...]}} of the layers with experts, an answer as
config_keys.py has it; a release that does not have the model's class has none. Names in an exclusion list may hold {a,b} and {0..9}, which stand for
one name each. Needs README.md's Python.
"""
import copy
import importlib
import os
import re
import types

import config_keys
import harness
import store

NAME = "published_configs.json"
GATED = ("gate_proj", "up_proj", "down_proj")
BRACES = re.compile(r"\{(\w+(?:,\w+)+|\d+\.\.\d+)\}")


def names_of(name):
    """The names that one with braces stands for."""
    found = None if name.startswith("re:") else BRACES.search(name)
    if not found:
        return [name]
    first, dots, last = found[1].partition("..")
    words = [str(number) for number in range(int(first), int(last) + 1)] if dots else found[1].split(",")
    return [made for word in words for made in names_of(name[:found.start()] + word + name[found.end():])]


def written_out(config):
    """The config as it was published."""
    config = copy.deepcopy(config)
    quantization = config.get("quantization_config", {})
    for key in ("exclude", "ignore"):
        if key in quantization:
            quantization[key] = [made for name in quantization[key] for made in names_of(name)]
    return config


def namespace(config):
    """As transformers gives it: members of nested configs are objects of their own, but for the quantization."""
    return types.SimpleNamespace(**{key: namespace(value) if key.endswith("_config") and key != "quantization_config" else value
                                    for key, value in config.items()})


def text_of(config):
    return config.get("text_config") or config.get("thinker_config", {}).get("text_config") or config


class Release(config_keys.Release):
    def mapper(self, config):
        """The renaming that the model's class asks for, of the class or of one that it builds on."""
        registry = importlib.import_module("vllm.model_executor.models.registry")
        made = getattr(registry.ModelRegistry.models[config["architectures"][0]].load_model_cls(), "hf_to_vllm_mapper", None)
        return made.get_rename_mapper() if hasattr(made, "get_rename_mapper") else made

    def layer(self, words=GATED):
        made = super().layer()
        made.ckpt_gate_proj_name, made.ckpt_up_proj_name, made.ckpt_down_proj_name = words
        return made

    def layers(self, row):
        """{answer: layers}, of the layers that have experts."""
        config = written_out(row["config"])
        text = text_of(config)
        model = namespace(config)
        quantization = config.get("quantization_config") or text["quantization_config"]
        self.settings._set_config(self.case)
        inner = model.text_config if hasattr(model, "text_config") else model
        self.settings.settings._current_vllm_config.model_config = types.SimpleNamespace(quantization_config=None, hf_config=model, hf_text_config=inner)
        answers = {}
        if config["architectures"][0] not in importlib.import_module("vllm.model_executor.models.registry").ModelRegistry.models:
            return None
        try:
            made = self.classes[self.name(quantization, model)].from_config(quantization)
            mapper = self.mapper(config)
            if mapper is not None:
                made.apply_vllm_mapper(mapper)
            if "routed_experts_quant_method" in quantization:  # the model's constructor reads it
                importlib.import_module("vllm.model_executor.models.bailing_moe_v3")._configure_ling_fp8_quant_config(made, inner)
            made.packed_modules_mapping = {"qkv_proj": ["q_proj", "k_proj", "v_proj"], "gate_up_proj": ["gate_proj", "up_proj"]}
        except Exception as error:
            return {"stop": [type(error).__name__]}
        dense = text.get("first_k_dense_replace", 0)
        sparse = text.get("moe_layer_freq")
        for layer in range(text["num_hidden_layers"]):
            if layer < dense or isinstance(sparse, list) and not sparse[layer]:
                continue
            try:
                method = made.get_quant_method(self.layer(row.get("words", GATED)), row["module"].format(layer))
                name = type(method).__name__
                answer = name if "Mxfp4MoEMethod" in name or "OCP_MX" in name and method.weight_dtype == "mxfp4" else "other"
            except Exception:
                answer = "stop"
            answers.setdefault(answer, []).append(layer)
        return {answer: ranges(layers) for answer, layers in answers.items()}


def ranges(layers):
    """Numbers in order, as "3-5" and "7"."""
    made = []
    for layer in layers:
        if made and made[-1][1] == layer - 1:
            made[-1][1] = layer
        else:
            made.append([layer, layer])
    return [str(first) if first == last else f"{first}-{last}" for first, last in made]


def rows():
    """The configs that are stored."""
    stored = harness.load(os.path.join(store.FOLDER, NAME))["rows"]
    return [{key: value for key, value in row.items() if key != "answers"} for row in stored]


def answers(version, platform, cache, rows):
    release = Release(version, platform, cache)
    return {number: release.layers(row) for number, row in rows.items()}


if __name__ == "__main__":
    harness.main(__file__, __doc__, NAME, rows, answers, lambda row: "rocm" if row["arch"].startswith("gfx") else "cuda")
