"""Conversions of checkpoints whose experts the oracle does not choose: mega MoE, and compressed-tensors and AutoRound on
CUTLASS. Each case of testdata/golden/frontier becomes a checkpoint; the digests are what vLLM's own loading code made of it."""
import hashlib
import json
import os
import shutil
import struct
import subprocess
import tempfile
import unittest

import numpy

GOLDEN = os.path.join(os.environ["TESTDATA"], "golden", "frontier")
TENSORS = ("w13_weight", "w13_weight_scale", "w2_weight", "w2_weight_scale")
MEGA = ["--arch", "sm100", "--moe-backend", "deep_gemm_mega_moe", "--enable-expert-parallel"]
AITER = ["--arch", "gfx950", "--moe-backend", "aiter_mega_moe", "--enable-expert-parallel", "--env", "VLLM_ROCM_USE_AITER=1",
         "--all2all-backend", "mori_high_throughput"]


def goldens(name):
    with open(os.path.join(GOLDEN, name + ".json"), encoding="utf-8") as file:
        return json.load(file)


def drawn(case, low, high):
    """Name, rows and codes or scales of each tensor, in the order in which they are drawn."""
    random = numpy.random.default_rng(case["seed"])
    hidden, inner = case["H"], case["I"]
    for expert in range(case["E"]):
        for word, rows, columns in (("w1", inner, hidden), ("w3", inner, hidden), ("w2", hidden, inner)):
            yield expert, word, "codes", random.integers(0, 256, (rows, columns // 2), dtype=numpy.uint8)
            yield expert, word, "scale", random.integers(low, high, (rows, columns // 32), dtype=numpy.uint8)


def write_checkpoint(folder, config, tensors):
    """`tensors`: name, safetensors dtype, array."""
    header, at = {}, 0
    for name, dtype, data in tensors:
        header[name] = {"dtype": dtype, "shape": list(data.shape), "data_offsets": [at, at + data.nbytes]}
        at += data.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    os.makedirs(folder)
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, _, data in tensors:
            file.write(data.tobytes())
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
    names = {"codes": (".weight", "I8"), "scale": (".scale", "F8_E8M0")}
    return write_checkpoint(folder, config, [(f"layers.0.ffn.experts.{expert}.{word}{names[kind][0]}", names[kind][1], data)
                                             for expert, word, kind, data in drawn(case, 0, 256)])


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
    fields = {"codes": ".weight_packed", "scale": ".weight_scale"}
    return write_checkpoint(folder, config, [(f"model.layers.0.mlp.experts.{expert}.{words[word]}{fields[kind]}", "U8", data)
                                             for expert, word, kind, data in drawn(case, 101, 140)])


def read_tensors(path):
    """Data by the last part of the name."""
    with open(path, "rb") as file:
        raw = file.read()
    length = struct.unpack("<Q", raw[:8])[0]
    data = raw[8 + length:]
    return {name.rsplit(".", 1)[1]: (entry["dtype"], entry["shape"], data[slice(*entry["data_offsets"])])
            for name, entry in json.loads(raw[8:8 + length]).items() if name != "__metadata__"}


class Frontier(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.out = os.path.join(self.folder, "out")

    def run_tool(self, *words):
        return subprocess.run([os.environ["BIN"], *map(str, words)], capture_output=True, text=True, timeout=300)

    def convert(self, source, *words):
        """The one layer file's tensors and the manifest, from a directory that is new each time; self.blob is the rank's."""
        shutil.rmtree(self.out, ignore_errors=True)
        done = self.run_tool("convert", source, "-o", self.out, "--compress", "none", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.blob, = (folder for folder, _, names in os.walk(self.out) if "mxfp4_repack.json" in names)
        with open(os.path.join(self.blob, "mxfp4_repack.json"), encoding="utf-8") as file:
            manifest = json.load(file)
        return read_tensors(os.path.join(self.blob, "layer-00000.safetensors")), manifest

    def expect(self, found, case):
        self.assertEqual(sorted(found), sorted(TENSORS))
        digests = {name: hashlib.sha256(data).hexdigest() for name, (_, _, data) in found.items()}
        self.assertEqual(digests, {name: case["tensors"][name]["sha256"] for name in TENSORS})

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
                    self.assertEqual(found[tensor][2], file.read(), (name, tensor))

    def test_shapes_and_round_trip(self):
        case = next(case for case in goldens("mega")["cases"] if case["id"] == "eplb-ep4-r3")
        source = deepseek_v4(os.path.join(self.folder, "model"), case)
        found, manifest = self.convert(source, *self.mega_words(case, "0.33.0"))
        storage = {t["name"].rsplit(".", 1)[1]: t["storage"] for t in manifest["layers"][0]["tensors"]}
        for name, want in case["tensors"].items():
            dtype, shape, _ = found[name]
            self.assertEqual(dtype, {"int8": "I8", "int32": "I32"}[want["dtype"]])
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
        loaded = read_tensors(file)
        experts = manifest["recipes"][0]["experts"]
        parts = {(e, w, k): d.tobytes() for e, w, k, d in drawn(case, 0, 256)}
        for name, words, kind in (("w13_weight", ("w1", "w3"), "codes"), ("w2_weight_scale", ("w2",), "scale")):
            self.assertEqual(loaded[name][2], b"".join(parts[e, w, kind] for e in experts for w in words), name)

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
