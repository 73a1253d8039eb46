#!/usr/bin/env python3
"""Which method a release's own draft classes give their experts: MTP and DSpark layers, of drawn quantization configs that name them or do not.

usage: draft_methods.py VERSION... [--cache DIR] [--draw SEED COUNT] [--out FILE]

Makes the engine's configuration of a small model with a speculative method, applies the renaming of the model's class, and builds the draft's class on
meta: its own constructor gives its experts their names, and the release's quantization config gives them a method. Attention and linear layers are
stood in for (tests/python/engine/cell_world.py). Writes testdata/engines/draft_methods.json.xz: {"wheels", "models": {NAME: {"config", "main", "draft"}},
"rows": [{"model", "quantization", "answers": {RELEASE: {"main": ANSWER, "drafts": {NAME IN THE ENGINE: ANSWER}}}}]}; "main" and "draft" are the
checkpoint's names of a layer's experts, an answer as config_keys.py has it. A release that lacks the draft's class has no answer. Needs README.md's Python.
"""
import contextlib
import copy
import importlib
import json
import os
import random
import sys
import tempfile

import config_keys
import grid
import harness
import wheels

LAYERS, EXPERTS = 3, 4
BASE = {"hidden_size": 256, "intermediate_size": 256, "moe_intermediate_size": 256, "num_hidden_layers": LAYERS, "num_experts_per_tok": 2, "vocab_size": 512,
        "num_attention_heads": 4, "num_key_value_heads": 4, "hidden_act": "silu", "max_position_embeddings": 4096, "rms_norm_eps": 1e-6, "head_dim": 64}
MLA = {"q_lora_rank": 64, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
DEEPSEEK = BASE | MLA | {"n_routed_experts": EXPERTS, "n_shared_experts": 1, "first_k_dense_replace": 1, "num_nextn_predict_layers": 1, "n_group": 1,
                         "topk_group": 1, "topk_method": "noaux_tc", "moe_layer_freq": 1, "norm_topk_prob": True, "scoring_func": "sigmoid",
                         "routed_scaling_factor": 1.0}
INDEXED = DEEPSEEK | {"index_topk": 64, "index_n_heads": 4, "index_head_dim": 64}
QWEN = BASE | {"num_experts": EXPERTS, "shared_expert_intermediate_size": 256, "layer_types": ["linear_attention"] * 2 + ["full_attention"],
               "linear_key_head_dim": 64, "linear_value_head_dim": 64, "linear_num_key_heads": 4, "linear_num_value_heads": 4, "linear_conv_kernel_dim": 4,
               "decoder_sparse_step": 1, "mlp_only_layers": []}
V4 = INDEXED | {"first_k_dense_replace": 0, "expert_dtype": "fp4", "o_lora_rank": 64, "o_groups": 2, "sliding_window": 128, "compress_ratios": [0, 4, 128, 0],
                "hc_mult": 4, "hc_eps": 1e-6, "hc_sinkhorn_iters": 20, "num_hash_layers": 0, "swiglu_limit": 10.0, "scoring_func": "sqrtsoftplus",
                "compress_rope_theta": 10000}
M3 = BASE | {"model_type": "minimax_m3", "hidden_act": "swigluoai", "swiglu_alpha": 1.702, "swiglu_limit": 7.0, "num_local_experts": EXPERTS,
             "n_shared_experts": 1, "moe_layer_freq": [0, 1, 1], "num_mtp_modules": 1}
GATED, NUMBERED = ("gate_proj", "up_proj", "down_proj"), ("w1", "w3", "w2")
MTP = {"method": "mtp", "num_speculative_tokens": 1}


def model(architecture, model_type, config, main="model.layers.{}.mlp.experts", draft=f"model.layers.{LAYERS}.mlp.experts", words=GATED, forms="cq",
          engine_main=None):
    """forms: compressed-tensors, Quark, DeepSeek's FP8. engine_main: the engine's name of a layer of the model's own, where it is another."""
    return {"config": {"architectures": [architecture], "model_type": model_type, **config}, "main": main, "draft": draft, "words": words, "forms": forms,
            "engine_main": engine_main or main}


MODELS = {
    "DeepSeek-V3": model("DeepseekV3ForCausalLM", "deepseek_v3", DEEPSEEK),
    "DeepSeek-V3.2": model("DeepseekV32ForCausalLM", "deepseek_v32", INDEXED),
    "GLM-5": model("GlmMoeDsaForCausalLM", "glm_moe_dsa", INDEXED),
    "GLM-4.6": model("Glm4MoeForCausalLM", "glm4_moe", DEEPSEEK | {"partial_rotary_factor": 0.5}),
    "GLM-4.7-Flash": model("Glm4MoeLiteForCausalLM", "glm4_moe_lite", DEEPSEEK),
    "Qwen3-Next": model("Qwen3NextForCausalLM", "qwen3_next", QWEN | {"num_nextn_predict_layers": 1}, draft="mtp.layers.0.mlp.experts"),
    "Qwen3.5": model("Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe",
                     {"text_config": QWEN | {"model_type": "qwen3_5_moe_text", "mtp_num_hidden_layers": 1}, "vision_config": {"model_type": "qwen3_5_moe"}},
                     main="model.language_model.layers.{}.mlp.experts", draft="mtp.layers.0.mlp.experts",
                     engine_main="language_model.model.layers.{}.mlp.experts"),
    "Hy3": model("HYV3ForCausalLM", "hy_v3", BASE | {"num_experts": EXPERTS, "num_shared_experts": 1, "num_nextn_predict_layers": 1,
                 "first_k_dense_replace": 1, "expert_hidden_dim": 256, "moe_router_enable_expert_bias": True, "enable_moe_fp32_combine": False,
                 "route_norm": True, "router_scaling_factor": 1.0}),
    "MiniMax-M3": model("MiniMaxM3SparseForConditionalGeneration", "minimax_m3_vl", {"text_config": M3, "vision_config": {}},
                        main="language_model.model.layers.{}.block_sparse_moe.experts",
                        draft="language_model.model.mtp.layers.0.block_sparse_moe.experts", words=NUMBERED),
    "DeepSeek-V4": model("DeepseekV4ForCausalLM", "deepseek_v4", V4, main="layers.{}.ffn.experts", draft="mtp.0.ffn.experts", words=NUMBERED, forms="fqc",
                         engine_main="model.layers.{}.ffn.experts"),
}


class Draws:
    def __init__(self, seed, entry):
        self.random, self.entry = random.Random(seed), entry

    def of(self, *values):
        return copy.deepcopy(self.random.choice(values))

    def names(self):
        """What a list may say of the draft: names and patterns of it, of its number, of a layer of the model's own, of nothing."""
        draft, words = self.entry["draft"], self.entry["words"]
        block = draft.rsplit(".experts", 1)[0]
        number = LAYERS if draft.startswith("model.layers") else 0
        return {
            "nothing": [], "modules": [draft], "projections": [f"{draft}.{e}.{w}" for e in range(EXPERTS) for w in words],
            "mtp": ["re:.*mtp.*"], "start": ["re:^mtp.*"], "number": [f"re:.*layers\\.{number}\\..*"], "last": [f"re:.*layers\\.{LAYERS}\\..*"],
            "block": [f"re:{block}.*".replace(".", "\\.").replace("\\.*", ".*")], "own": [f"re:.*layers\\.1\\..*experts.*"]}

    def config(self):
        return {"c": self.compressed_tensors, "q": self.quark, "f": self.fp8}[self.random.choice(self.entry["forms"])]()

    def compressed_tensors(self):
        names = self.names()
        weights = copy.deepcopy(config_keys.WEIGHTS)
        first = {"targets": self.of(["Linear"], ["Linear"], ["re:.*experts.*"], ["re:.*layers\\.\\d+\\..*experts.*"]), "weights": weights,
                 "input_activations": self.of(None, None, weights | {"dynamic": True}), "format": "mxfp4-pack-quantized"}
        groups = [first]
        if self.random.random() < 0.25:
            other = {"num_bits": 8, "type": "float", "symmetric": True, "strategy": "channel", "dynamic": False}
            targets = self.of(names["mtp"], names["number"], names["block"], names["projections"])
            groups.insert(0, {"targets": targets, "weights": other, "input_activations": copy.deepcopy(config_keys.FP8), "format": "float-quantized"})
        rest = ["lm_head", "re:.*self_attn.*", "re:.*shared.*"]
        return {"quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized" if len(groups) == 1 else "mixed-precision",
                "config_groups": {f"group_{i}": made for i, made in enumerate(groups)}, "ignore": rest + names[self.of(*names)]}

    def quark(self):
        made, names, draft = config_keys.quark(config_keys.MX | {"is_dynamic": True}), self.names(), self.entry["draft"]
        if self.random.random() < 0.3:
            pattern = self.of("*mtp*", f"*layers.{LAYERS}.*", f"{draft}*", "*layers.0.*")
            made["layer_quant_config"][pattern] = made["global_quant_config"] | {"weight": config_keys.TENSOR, "input_tensors": config_keys.TENSOR}
        made["exclude"] = ["lm_head", "re:.*self_attn.*", "re:.*shared.*"] + names[self.of(*names)]
        return made

    def fp8(self):
        return copy.deepcopy(config_keys.BLOCKS)


class Release:
    """One release, which stands for the machine that a form is served on."""

    def __init__(self, version, platform, cache):
        sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python", "engine"))
        os.environ["MXFP4_ENGINES_CACHE"] = cache
        import cell_world
        import engine
        self.world, self.engine = cell_world, engine
        arch = config_keys.ARCHES[platform]
        engine.start(wheels.site(version, cache), arch, cell_world.IMAGE[platform])
        engine.world.Scene.current.set(arch, engine.world.Scene.current.libs, grid.AITER if platform == "rocm" else {})
        import torch
        self.torch = torch
        torch.accelerator.current_device_index = lambda: 0
        torch.cuda.Stream = torch.cuda.Event = type("Unused", (), {"__init__": lambda self, *a, **k: None})
        cell_world.without_attention(())
        self.loading = importlib.import_module("vllm.model_executor.model_loader.utils")
        self.interfaces = importlib.import_module("vllm.model_executor.models.interfaces")
        self.settings = importlib.import_module("vllm.config")
        self.stripped, self.ready = set(), False

    def without_attention(self, name):
        """Takes attention out of a model's module and those that it names."""
        if name in self.stripped:
            return
        self.stripped.add(name)
        module, stand_in = sys.modules[name], self.world.absent()
        for key, value in list(vars(module).items()):
            if isinstance(value, type) and issubclass(value, self.torch.nn.Module):
                if self.world.ATTENTION.search(key) and not any(word in key for word in ("ForC", "Decoder", "MultiToken")):
                    setattr(module, key, stand_in)
                elif value.__module__.startswith(("vllm.models", "vllm.model_executor.models")):
                    self.without_attention(value.__module__)
            elif key.startswith("_select") and "attn" in key:
                setattr(module, key, lambda *a, **k: stand_in)

    def begin(self, config):
        if self.ready:
            return
        from vllm.distributed import parallel_state
        with self.settings.set_current_vllm_config(config):
            self.world.alone(0, 1)
            parallel_state.init_distributed_environment(world_size=1, rank=0, distributed_init_method="tcp://127.0.0.1:29998", local_rank=0, backend="gloo")
            parallel_state.ensure_model_parallel_initialized(1, 1)
        self.ready = True

    def rename(self, quantization, made):
        """The renaming that building the model's class does to the quantization config, which the draft's class gets afterwards."""
        if issubclass(made, self.interfaces.SupportsQuant) and getattr(made, "hf_to_vllm_mapper", None) is not None:
            mapper = made.hf_to_vllm_mapper
            quantization.apply_vllm_mapper(mapper.get_rename_mapper() if hasattr(mapper, "get_rename_mapper") else mapper)
        else:
            self.loading.configure_quant_config(quantization, made)

    def answer(self, entry, quantization):
        """{"main", "drafts"}; None where the release has no such model or draft."""
        with open("model/config.json", "w") as file:
            json.dump(entry["config"] | {"quantization_config": quantization}, file)
        try:
            config = self.engine.config_of(model="model", speculative_config=dict(MTP), enable_prefix_caching=False)
        except Exception as error:
            absent = ("are not supported", "not recognize", "has no vLLM implementation", "Unsupported", "does not support")
            return None if any(word in str(error) for word in absent) else {"stop": f"{type(error).__name__}"}
        self.begin(config)
        draft = config.speculative_config.draft_model_config
        self.rename(config.quant_config, self.loading.get_model_architecture(config.model_config)[0])
        self.without_attention(self.loading.get_model_architecture(draft)[0].__module__)
        kind, found, layers = type(config.quant_config), {}, []
        ask = kind.get_quant_method

        def recorded(this, layer, prefix, *rest, **named):
            experts = type(layer).__name__ in ("RoutedExperts", "FusedMoE", "SharedFusedMoE")
            try:
                method = ask(this, layer, prefix, *rest, **named)
            except Exception:
                if experts:
                    found[prefix] = "stop"
                raise
            if experts:
                layers.append(layer)
                found[prefix] = name_of(method)
            return method

        kind.get_quant_method = recorded
        try:
            with self.settings.set_current_vllm_config(config), self.torch.device("meta"), contextlib.suppress(*(() if os.environ.get("DRAFT_ERRORS") else (Exception,))):
                config.compilation_config.static_forward_context.clear()
                self.loading.initialize_model(config, model_config=draft)
        finally:
            kind.get_quant_method = ask
        main = "stop"
        with self.settings.set_current_vllm_config(config), contextlib.suppress(Exception):
            main = name_of(config.quant_config.get_quant_method(layers[0], entry["engine_main"].format(2)))
        return {"main": main, "drafts": found}


def name_of(method):
    name = type(method).__name__
    return name if "Mxfp4MoEMethod" in name or "OCP_MX" in name and method.weight_dtype == "mxfp4" else "other"


def rows(seed, count):
    """Each model and quantization once."""
    made = {}
    for number in range(int(count)):
        for name, entry in MODELS.items():
            row = {"model": name, "quantization": Draws(f"{seed} {name} {number}", entry).config()}
            made.setdefault(json.dumps(row), row)
    return list(made.values())


def answers(version, platform, cache, rows):
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.mkdir("model")
        release = Release(version, platform, cache)
        return {number: release.answer(MODELS[row["model"]], row["quantization"]) for number, row in rows.items()}


if __name__ == "__main__":
    harness.main(__file__, __doc__, "draft_methods.json.xz", rows, answers, lambda row: config_keys.platform_of(row["quantization"]), draw=("drafts", "12"),
                 head={"models": {name: {key: entry[key] for key in ("config", "main", "draft", "words")} for name, entry in MODELS.items()}})
