"""Conversions of checkpoints whose experts the oracle does not choose: mega MoE, and compressed-tensors and AutoRound on
CUTLASS; and of Kimi-K3 and DeepSeek-V4.1 as published. Each case of testdata/golden/frontier and testdata/frontier becomes a checkpoint,
drawn as the README there says; the digests are what vLLM's own loading code made of it."""
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import unittest

import numpy

import layer_files

GOLDEN = os.path.join(os.environ["TESTDATA"], "golden", "frontier")
TENSORS = ("w13_weight", "w13_weight_scale", "w2_weight", "w2_weight_scale")
MEGA = ["--arch", "sm100", "--moe-backend", "deep_gemm_mega_moe", "--enable-expert-parallel"]
AITER = ["--arch", "gfx950", "--moe-backend", "aiter_mega_moe", "--enable-expert-parallel", "--env", "VLLM_ROCM_USE_AITER=1",
         "--all2all-backend", "mori_high_throughput"]


def goldens(name, folder=GOLDEN):
    with open(os.path.join(folder, name + ".json"), encoding="utf-8") as file:
        return json.load(file)


def drawn(case, low, high):
    """Name, rows and codes or scales of each tensor, in the order in which they are drawn."""
    random = numpy.random.default_rng(case["seed"])
    hidden, inner = case["H"], case["I"]
    for expert in range(case["E"]):
        for word, rows, columns in (("w1", inner, hidden), ("w3", inner, hidden), ("w2", hidden, inner)):
            yield expert, word, "codes", random.integers(0, 256, (rows, columns // 2), dtype=numpy.uint8)
            yield expert, word, "scale", random.integers(low, high, (rows, columns // 32), dtype=numpy.uint8)


# What follows an expert's name, and its type, of codes and of scales.
DEEPSEEK = {"codes": (".weight", "I8"), "scale": (".scale", "F8_E8M0")}
PACKED = {"codes": (".weight_packed", "U8"), "scale": (".weight_scale", "U8")}


def named(module, names, drawn_ones, words=None):
    """{name: (type, array)} of one layer."""
    return {f"{module}.experts.{expert}.{words[word] if words else word}{names[kind][0]}": (names[kind][1], data)
            for expert, word, kind, data in drawn_ones}


def write_checkpoint(folder, config, tensors):
    os.makedirs(folder)
    layer_files.write(os.path.join(folder, "model.safetensors"), tensors)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)
    return folder


def deepseek_v4(folder, case, **changes):
    config = {"architectures": ["DeepseekV4ForCausalLM"], "model_type": "deepseek_v4", "hidden_size": case["H"],
              "moe_intermediate_size": case["I"], "num_hidden_layers": 1, "n_routed_experts": case["E"], "n_shared_experts": 1,
              "num_experts_per_tok": 1, "num_nextn_predict_layers": 0, "norm_topk_prob": True, "scoring_func": "sqrtsoftplus",
              "topk_method": "noaux_tc", "expert_dtype": "fp4", "hidden_act": "silu",
              "quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3", "scale_fmt": "ue8m0",
                                      "weight_block_size": [128, 128]}, **changes}
    return write_checkpoint(folder, config, named("layers.0.ffn", DEEPSEEK, drawn(case, 0, 256)))


WEIGHTS = {"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32, "symmetric": True, "dynamic": False}
METHODS = {
    "ct": {"quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized", "ignore": ["lm_head"],
           "quantization_status": "compressed",
           "config_groups": {"group_0": {"targets": ["Linear"], "input_activations": None, "weights": WEIGHTS}}},
    "inc": {"quant_method": "auto-round", "bits": 4, "group_size": 32, "data_type": "mx_fp", "sym": True, "act_bits": 4,
            "act_data_type": "mx_fp_rceil", "act_group_size": 32, "act_dynamic": True, "packing_format": "auto_round:llm_compressor"},
}


def qwen3(folder, case, method):
    config = {"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_size": case["H"], "intermediate_size": 768,
              "moe_intermediate_size": case["I"], "num_experts": case["E"], "num_experts_per_tok": 1, "num_hidden_layers": 1,
              "decoder_sparse_step": 1, "mlp_only_layers": [], "norm_topk_prob": True, "hidden_act": "silu",
              "quantization_config": METHODS[method]}
    words = {"w1": "gate_proj", "w3": "up_proj", "w2": "down_proj"}
    return write_checkpoint(folder, config, named("model.layers.0.mlp", PACKED, drawn(case, 101, 140), words))


def kimi_k3(folder, case):
    text = {"model_type": "kimi_linear", "hidden_size": 2 * case["H"], "routed_expert_hidden_size": case["H"], "intermediate_size": 96,
            "moe_intermediate_size": case["I"], "num_hidden_layers": 2, "first_k_dense_replace": 1, "num_experts": case["E"],
            "num_experts_per_token": 2, "num_shared_experts": 2, "hidden_act": "situ", "activation_situ_beta": 4.0,
            "activation_situ_linear_beta": 25.0, "moe_router_activation_func": "sigmoid", "moe_renormalize": True, "use_grouped_topk": True,
            "num_expert_group": 1, "topk_group": 1, "topk_method": "noaux_tc", "num_nextn_predict_layers": 0,
            "quantization_config": {"quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized", "ignore": ["re:.*self_attn.*"],
                                    "config_groups": {"group_0": {"targets": ["re:.*block_sparse_moe.experts.*"], "input_activations": None,
                                                                  "weights": {**WEIGHTS, "scale_dtype": "torch.uint8"}}}}}
    return write_checkpoint(folder, {"architectures": ["KimiK3ForConditionalGeneration"], "model_type": "kimi_k3", "text_config": text},
                            named("language_model.model.layers.1.block_sparse_moe", PACKED, drawn(case, 101, 140)))


def deepseek_v41(folder, case):
    """The model of the case's sizes: one layer of 12 experts, three draft stages of 4. Only the first stage is compared."""
    text = {"model_type": "deepseek_v41_text", "hidden_size": case["H"], "moe_intermediate_size": case["I"], "num_hidden_layers": 1,
            "n_routed_experts": 12, "n_shared_experts": 1, "num_experts_per_tok": 2, "scoring_func": "sqrtsoftplus", "topk_method": "noaux_tc",
            "norm_topk_prob": True, "routed_scaling_factor": 1.5, "swiglu_limit": 10.0, "hidden_act": "silu", "num_nextn_predict_layers": 3,
            "dspark_n_routed_experts": 4}
    config = {"architectures": ["DeepseekV41ForCausalLM"], "model_type": "deepseek_v41", "text_config": text,
              "quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [32, 32], "scale_fmt": "ue8m0",
                                      "expert_dtype": "fp4"}}
    main, tensors = case["seed"] - (0 if case["prefix"] == "layers." else 1000), {}
    for module, count, seed in (("layers.0.ffn", 12, main), ("mtp.0.ffn", 4, main + 1000), ("mtp.1.ffn", 4, 1), ("mtp.2.ffn", 4, 2)):
        tensors.update(named(module, DEEPSEEK, drawn({**case, "E": count, "seed": seed}, 101, 140)))
    return write_checkpoint(folder, config, tensors)


class Frontier(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.out = os.path.join(self.folder, "out")

    def run_tool(self, *words):
        return subprocess.run([os.environ["BIN"], *map(str, words)], capture_output=True, text=True, timeout=300)

    def convert(self, source, *words, layer=""):
        """A layer file's tensors, by the last part of the name, and the manifest, from a directory that is new each time; self.blob is the
        rank's. layer: how the layer's prefix begins."""
        shutil.rmtree(self.out, ignore_errors=True)
        done = self.run_tool("convert", source, "-o", self.out, "--compress", "none", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.blob, = (folder for folder, _, names in os.walk(self.out) if "mxfp4_repack.json" in names)
        with open(os.path.join(self.blob, "mxfp4_repack.json"), encoding="utf-8") as file:
            manifest = json.load(file)
        (entry,) = (entry for entry in manifest["layers"] if entry["prefix"].startswith(layer))
        return self.read(os.path.join(self.blob, entry["file"])), manifest

    @staticmethod
    def read(path):
        return {name.rpartition(".")[2]: array for name, array in layer_files.read(path)[0].items()}

    def expect(self, found, case):
        digests = {name: hashlib.sha256(array.tobytes()).hexdigest() for name, array in found.items()}
        self.assertEqual(digests, {name: tensor["sha256"] for name, tensor in case["tensors"].items()})

    def mega_words(self, case, release):
        words = [*MEGA, "--tp-size", case["ep"], "--revision", release]
        if case["ep"] > 1:
            words += ["--rank", case["rank"]]
        if case["redundant"]:
            words += ["--enable-eplb", "--num-redundant-experts", case["redundant"]]
        return words

    def test_mega(self):
        everything = goldens("mega")
        padded = {case["id"]: case for case in everything["0.30.0, where intermediate sizes are padded to multiples of 512"]}
        compared = 0
        for case in everything["cases"]:
            source = deepseek_v4(os.path.join(self.folder, case["id"]), case)
            with self.subTest(case["id"]):
                if "refused" in case:
                    done = self.run_tool("convert", source, "-o", self.out, *self.mega_words(case, "0.33.0"))
                    self.assertEqual(done.returncode, 4, done.stderr)
                    self.assertIn("multiples of 128", done.stderr)
                    continue
                # What releases share is their rules' own test; here the oldest one joins for small cases of each kind.
                older = {"e1-h128-i128": ["0.21.0"], "eplb-ep4-r3": ["0.23.0"]}.get(case["id"], [])
                for release in [*older, "0.33.0"]:
                    found, manifest = self.convert(source, *self.mega_words(case, release))
                    self.expect(found, case)
                    self.assertEqual(manifest["layout"], "deepgemm/mega-moe")
                    slots = range(case["rank"] * len(manifest["recipes"][0]["experts"]), case["E"] + case["redundant"])
                    self.assertEqual(manifest["recipes"][0]["experts"],
                                     [slot % case["E"] for slot in slots][:len(manifest["recipes"][0]["experts"])])
                    compared += 1
                if case["id"] in padded:
                    self.expect(self.convert(source, *self.mega_words(case, "0.30.0"))[0], padded[case["id"]])
                    compared += 1
            shutil.rmtree(source)
        self.assertEqual(compared, 19 + 15 + 2)

    def test_raw_bytes(self):
        cases = {case["id"]: case for case in goldens("mega")["cases"]}
        raw = os.listdir(os.path.join(GOLDEN, "mega"))
        self.assertTrue(raw)
        for name in sorted({file.split(".")[0] for file in raw}):
            found, _ = self.convert(deepseek_v4(os.path.join(self.folder, name), cases[name]), *self.mega_words(cases[name], "0.33.0"))
            for tensor in TENSORS:
                with open(os.path.join(GOLDEN, "mega", f"{name}.{tensor}.bin"), "rb") as file:
                    self.assertEqual(found[tensor].tobytes(), file.read(), (name, tensor))

    def test_shapes_and_round_trip(self):
        case = next(case for case in goldens("mega")["cases"] if case["id"] == "eplb-ep4-r3")
        source = deepseek_v4(os.path.join(self.folder, "model"), case)
        found, manifest = self.convert(source, *self.mega_words(case, "0.33.0"))
        storage = {t["name"].rsplit(".", 1)[1]: t["storage"] for t in manifest["layers"][0]["tensors"]}
        for name, want in case["tensors"].items():
            shape = list(found[name].shape)
            self.assertEqual(str(found[name].dtype), want["dtype"])
            if name.endswith("scale"):
                self.assertEqual(storage[name]["storage_shape"], want["shape"])
                experts, rows, words = want["shape"]
                self.assertEqual(shape, [experts, words, rows])
            else:
                self.assertEqual(shape, want["shape"])
        self.assertEqual(manifest["deployment"]["num_redundant_experts"], case["redundant"])
        done = self.run_tool("verify", self.blob, "--against", source)
        self.assertEqual(done.returncode, 0, done.stderr)
        back = os.path.join(self.folder, "back")
        done = self.run_tool("unpack", self.blob, "-o", back)
        self.assertEqual(done.returncode, 0, done.stderr)
        file, = (os.path.join(folder, name) for folder, _, names in os.walk(back) for name in names
                 if name == "layer-00000.safetensors")
        loaded = self.read(file)
        experts = manifest["recipes"][0]["experts"]
        parts = {(e, w, k): d.tobytes() for e, w, k, d in drawn(case, 0, 256)}
        for name, words, kind in (("w13_weight", ("w1", "w3"), "codes"), ("w2_weight_scale", ("w2",), "scale")):
            self.assertEqual(loaded[name].tobytes(), b"".join(parts[e, w, kind] for e in experts for w in words), name)

    def test_aiter_mega(self):
        for case in goldens("aiter-mega")["cases"]:
            source = deepseek_v4(os.path.join(self.folder, case["id"]), case)
            for release in ("0.32.0", "0.33.0"):
                with self.subTest(case["id"], release=release):
                    words = [*AITER, "--dp-size", case["ep"], "--revision", release]
                    found, manifest = self.convert(source, *words, *(["--rank", case["rank"]] if case["ep"] > 1 else []))
                    self.expect(found, case)
                    self.assertEqual(manifest["layout"], "aiter/bf16-halves")
            shutil.rmtree(source)

    def test_cutlass(self):
        for case in goldens("cutlass")["cases"]:
            source = qwen3(os.path.join(self.folder, case["id"]), case, case["id"].split("-")[0])
            with self.subTest(case["id"]):
                words = ["--arch", case["arch"], "--tp-size", case["tp"], "--rank", case["rank"]]
                words += ["--enable-expert-parallel"] * case["expert_parallel"]
                if "refused" in case:
                    done = self.run_tool("convert", source, "-o", self.out, *words, "--revision", "0.33.0")
                    self.assertEqual(done.returncode, 4, done.stderr)
                    self.assertNotIn("--pad auto", done.stderr)
                    continue
                found, manifest = self.convert(source, *words, "--revision", "0.33.0")
                self.expect(found, case)
                self.assertEqual(manifest["layout"], "cutlass/mxfp4")

    def test_newest_models(self):
        compared = 0
        for name, make in (("kimi_k3", kimi_k3), ("deepseek_v41", deepseek_v41)):
            for case in goldens(name, os.path.join(os.environ["TESTDATA"], "frontier"))["cases"]:
                source = make(os.path.join(self.folder, case["id"]), case)
                with self.subTest(case["id"]):
                    found, manifest = self.convert(source, "--revision", "0.33.0", "--arch", case["arch"], "--moe-backend", case["moe_backend"], "--tp-size",
                                                   case["tp"], "--rank", case["rank"], *["--enable-expert-parallel"] * case["expert_parallel"],
                                                   layer=case.get("prefix", ""))
                    self.assertEqual(manifest["target"]["backend"], case["backend"])
                    self.assertEqual({key: list(found[key].shape) for key in case["tensors"]}, {key: one["shape"] for key, one in case["tensors"].items()})
                    self.expect({key: found[key] for key in case["tensors"]}, case)
                    compared += len(case["tensors"])
                shutil.rmtree(source)
        self.assertEqual(compared, 88)

    def refused(self, source, pattern, *words, code=4):
        done = self.run_tool("convert", source, "-o", self.out, *words)
        self.assertEqual(done.returncode, code, (words, done.stderr))
        self.assertRegex(done.stderr, pattern)
        self.assertFalse(os.path.exists(self.out))

    def test_refusals_of_mega(self):
        case = {"seed": 1, "E": 4, "H": 128, "I": 128}
        source = deepseek_v4(os.path.join(self.folder, "v4"), case)
        self.refused(source, "requires expert parallel", "--arch", "sm100", "--moe-backend", "deep_gemm_mega_moe", "--revision", "0.33.0")
        self.refused(source, "requires SM100", *MEGA[2:], "--arch", "sm90", "--revision", "0.33.0")
        self.refused(source, "divisible by ep_size=3", *MEGA, "--tp-size", 3, "--revision", "0.33.0")
        self.refused(source, "LoRA is not supported", *MEGA, "--enable-lora", "--revision", "0.33.0")
        self.refused(source, "outside the oracle", *MEGA[2:], "--arch", "gfx950", "--revision", "0.33.0")
        self.refused(source, "not enabled|EPLB", *MEGA, "--tp-size", 2, "--num-redundant-experts", 2, "--revision", "0.33.0")
        for key, value, release, pattern in (("scoring_func", "sigmoid", "0.21.0", "sqrtsoftplus"),
                                             ("norm_topk_prob", False, "0.31.0", "normalized")):
            other = deepseek_v4(os.path.join(self.folder, key), case, **{key: value})
            self.refused(other, pattern, *MEGA, "--revision", release)
        self.assertEqual(self.run_tool("explain", os.path.join(self.folder, "norm_topk_prob"), *MEGA, "--revision", "0.30.0").returncode, 0)
        for words, pattern in ((["--tp-size", 2], "TP=1"), (["--all2all-backend", "deepep_low_latency"], "MoRI"),
                               (["--enable-eplb", "--dp-size", 2], "EPLB"), (["--dp-size", 3], "drops experts"),
                               (["--arch", "gfx942"], "gfx950")):
            left = [w for i, w in enumerate(AITER) if w not in words and AITER[i - 1] not in words]
            self.refused(source, pattern, *left, *words, "--revision", "0.33.0")


if __name__ == "__main__":
    unittest.main()
