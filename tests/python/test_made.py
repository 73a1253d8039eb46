"""open_checkpoint(): what is made from a checkpoint is what convert writes, for every layout, style and slice,
in parts, by several threads and in streams; and a checkpoint that changes meanwhile is an error."""
import concurrent.futures
import contextlib
import ctypes
import itertools
import json
import os
import random
import shutil
import subprocess
import unittest

import numpy as np

import blob_maker
import layer_files
import mxfp4_repack
import test_frontier
from mxfp4_repack import structures

os.environ["MXFP4_REPACK"] = os.environ["BIN"]

MACHINES = ({"arch": "sm90"}, {"arch": "sm100"}, {"arch": "sm80"}, {"arch": "sm120"}, {"arch": "gfx950"},
            {"arch": "gfx942"}, {"arch": "gfx1250"}, {"platform": "xpu"}, {"arch": "x86_64"})
KNOBS = {"MARLIN": ({"marlin_input_dtype": "fp8"},),
         "HUMMING": tuple({"humming_input_dtype": name} for name in (
             "float8e4m3", "float8e4m3-group128", "int8", "float4e2m1"))}
STYLES = ("ct_kimi", "ct_mxfp4", "dsv4", "gptoss_hf", "gptoss_original", "quark_gptoss_w4a8", "quark_w4a4")
SIZES = (320, 160), (256, 128)  # most layouts pad the first ones, some refuse them
CANCELLED = 7
# Layouts of activations, variables and compilers that no row here sets: tests/cli/every_layout.py has them. What a model
# asks for by itself, test_mega has.
UNREACHED = {"aiter/bf16-situ", "aiter/bf16-situ-a8w4", "aiter/bf16-separated", "aiter/int4", "aiter/triton-w4a4",
             "deepgemm/mega-moe", "humming/mma-fp16", "humming/mma-native-fp16", "humming/mma-native"}


def listed(what, *flags):
    return json.loads(subprocess.run([blob_maker.BIN, "list", what, "--json", *flags],
                                     stdout=subprocess.PIPE, check=True).stdout)[what]


def without_sums(value):
    """A manifest without what depends on data, files and the seal, and what only a written blob says."""
    if isinstance(value, dict):
        return {key: without_sums(item) for key, item in value.items()
                if key not in ("xxh3_128", "manifest_xxh3_128", "warnings")}
    return [without_sums(item) for item in value] if isinstance(value, list) else value


def bytes_of(layer, name):
    return layer.numpy(name, stored=True).reshape(-1).view("u1")


class Made(unittest.TestCase):
    def convert(self, source, **flags):
        shutil.rmtree("made-blob", ignore_errors=True)
        return mxfp4_repack.convert(source, "made-blob", compress="none", **flags)

    def compare(self, source, rank=None, **flags):
        """The blob in made-blob, and what is made with the same flags, are equal."""
        with mxfp4_repack.open_blob("made-blob", rank=rank) as blob, \
                mxfp4_repack.open_checkpoint(source, rank=rank, **flags) as made:
            self.assertEqual(without_sums(made.manifest), without_sums(blob.manifest))
            self.assertEqual(made.layers, blob.layers)
            for prefix in blob.layers:
                with blob.layer(prefix) as one, made.layer(prefix) as other:
                    self.assertEqual(other.tensors, one.tensors)
                    for name in one.tensors:
                        for fact in ("torch_dtype", "shape", "strides", "file_dtype", "file_shape", "flags"):
                            self.assertEqual(getattr(other.info(name), fact), getattr(one.info(name), fact))
                        self.assertTrue(np.array_equal(bytes_of(one, name), bytes_of(other, name)), name)

    def test_every_layout(self):
        for family in ("gpt_oss", "generic"):
            for scales, (hidden, inter) in itertools.product((False, True), SIZES):
                make_loaded(f"made-{family}-{scales}-{hidden}.safetensors", family, scales, hidden, inter)
        missing, revisions = set(), [row["revision"] for row in listed("revisions")]
        met = set()
        for revision in revisions[-1:] + [name for name in revisions if name.startswith("vllm-20")]:
            rows = [row for row in listed("backends", "--revision", revision) if row["layout"]]
            missing |= {row["layout"] for row in rows}
            for row, machine in itertools.product(rows, MACHINES):
                for knobs in ({}, *KNOBS.get(row["backend"], ())):
                    self.convert_row(revision, row, machine, knobs, met)
        self.assertLessEqual(missing - met, UNREACHED)

    def convert_row(self, revision, row, machine, knobs, met):
        families = ("gpt_oss", "generic") if row["family"] == "both" else (row["family"],)
        for family, (hidden, _) in itertools.product(families, SIZES):
            scales = row["backend"] == "AITER_MXFP4_FP8"
            source = f"made-{family}-{scales}-{hidden}.safetensors"
            flags = dict(revision=revision, backend=row["backend"], knob=knobs, **machine)
            with contextlib.suppress(mxfp4_repack.CommandError):
                found = mxfp4_repack.explain(source, **flags)
                if found.refusal or (found.layout, family) in met:
                    continue
                self.convert(source, **flags)
                met |= {found.layout, (found.layout, family)}
                with self.subTest(layout=found.layout, family=family):
                    self.compare(source, **flags)

    def test_styles(self):
        for style in STYLES:
            source = os.path.join(os.environ["TESTDATA"], "ingest", style)
            for backend in ("EMULATION", "MARLIN"):
                flags = {"backend": backend, "arch": "sm90"}
                try:
                    self.convert(source, **flags)
                except mxfp4_repack.CommandError as refused:
                    with self.assertRaises(mxfp4_repack.CommandError) as again:
                        mxfp4_repack.open_checkpoint(source, **flags)
                    self.assertEqual(str(again.exception).split(": ", 1)[1], str(refused).split(": ", 1)[1])
                    continue
                with self.subTest(style=style, backend=backend):
                    self.compare(source, **flags)

    def test_ranks(self):
        source = blob_maker.model("made-ranks", layers=1, experts=4, hidden=320, inter=384)
        for sizes in ({"tp_size": 2}, {"tp_size": 2, "enable_expert_parallel": True}, {"tp_size": 3}):
            for backend in ("TRITON", "MARLIN", "EMULATION"):
                flags = {"backend": backend, "arch": "sm90", **sizes}
                ranks = self.convert(source, **flags).num_ranks
                for rank in range(ranks):
                    with self.subTest(sizes=sizes, backend=backend, rank=rank):
                        self.compare(source, rank=rank, **flags)
                with self.assertRaisesRegex(mxfp4_repack.RankError, f"{ranks} ranks"):
                    mxfp4_repack.open_checkpoint(source, **flags)

    def test_mega(self):
        """Redundant experts are those of the model again, from the first one on."""
        shutil.rmtree("made-mega", ignore_errors=True)
        source = test_frontier.deepseek_v4("made-mega", {"seed": 3, "E": 4, "H": 256, "I": 128})
        for redundant in ({}, {"enable_eplb": True, "num_redundant_experts": 2}):
            flags = {"arch": "sm100", "moe_backend": "deep_gemm_mega_moe", "enable_expert_parallel": True,
                     "tp_size": 2, **redundant}
            self.convert(source, **flags)
            for rank in range(2):
                with self.subTest(redundant=bool(redundant), rank=rank):
                    self.compare(source, rank=rank, **flags)

    def test_parts(self):
        source = blob_maker.model("made-parts", layers=1, experts=3, hidden=320, inter=352)
        for backend in ("TRITON", "MARLIN", "EMULATION"):
            draw = random.Random(backend)
            flags = {"backend": backend, "arch": "sm90"}
            self.convert(source, **flags)
            with mxfp4_repack.open_blob("made-blob") as blob, mxfp4_repack.open_checkpoint(source, **flags) as made, \
                    blob.layer(0) as one, made.layer(0) as other, concurrent.futures.ThreadPoolExecutor(4) as pool:
                def read(part):
                    name, begin, size = part
                    out = np.full(size, 0xEE, "u1")
                    other.read_into(name, begin, out, threads=draw.choice((1, 3)))
                    return np.array_equal(out, bytes_of(one, name)[begin:begin + size])
                parts = []
                for name in one.tensors:
                    size = one.info(name).nbytes
                    parts += [(name, begin, draw.randrange(size - begin + 1))
                              for begin in (draw.randrange(size + 1) for _ in range(12))]
                self.assertTrue(all(pool.map(read, parts)), backend)

    def test_changed_checkpoint(self):
        flags = {"backend": "MARLIN", "arch": "sm90"}
        for change in layer_files.CHANGES:
            shutil.rmtree("made-changed", ignore_errors=True)
            layer_files.make_gpt_oss("made-changed", 1, 3, 320, 352)
            shard = next(os.path.join("made-changed", name) for name in os.listdir("made-changed")
                         if name.endswith(".safetensors"))
            for begun in (False, True):  # whether the file was read from before
                with self.subTest(change=change.__name__, begun=begun), \
                        mxfp4_repack.open_checkpoint("made-changed", **flags) as made, made.layer(0) as layer:
                    if begun:
                        layer.numpy("w13_weight")
                    kept = shutil.copy2(shard, "made-kept")
                    change(shard)
                    with self.assertRaises(mxfp4_repack.BlobError) as found:
                        for name in layer.tensors:
                            layer.numpy(name)
                    self.assertIn(os.path.basename(shard), str(found.exception))
                    shutil.copy2(kept, shard)

    def test_manifest_of_a_blob(self):
        flags = {"backend": "MARLIN", "arch": "sm90"}
        shutil.rmtree("made-damaged", ignore_errors=True)
        layer_files.make_gpt_oss("made-damaged", 1, 3, 320, 352)
        self.convert("made-damaged", **flags)
        with mxfp4_repack.open_blob("made-blob") as blob:
            manifest = blob.manifest
        with mxfp4_repack.open_checkpoint("made-damaged", conversion=manifest) as made, made.layer(0) as layer:
            for name in layer.tensors:
                layer.numpy(name)
        shard = next(os.path.join("made-damaged", name) for name in os.listdir("made-damaged")
                     if name.endswith(".safetensors"))
        tensors, _ = layer_files.read(shard)
        largest = max(tensors, key=lambda name: tensors[name].nbytes)
        with open(shard, "rb") as file:
            whole = bytearray(file.read())
        at = bytes(whole).index(tensors[largest].tobytes()) + tensors[largest].nbytes // 2
        whole[at] ^= 1
        with open(shard, "wb") as file:
            file.write(whole)
        with mxfp4_repack.open_checkpoint("made-damaged", conversion=manifest) as made, made.layer(0) as layer, \
                self.assertRaisesRegex(mxfp4_repack.ChecksumError, "checksum differs"):
            for name in layer.tensors:
                layer.numpy(name)

    def test_other_checkpoint(self):
        flags = {"backend": "MARLIN", "arch": "sm90"}
        source = blob_maker.model("made-one", layers=1, experts=3, hidden=320, inter=352)
        other = blob_maker.model("made-two", layers=1, experts=4, hidden=320, inter=352)
        self.convert(source, **flags)
        with mxfp4_repack.open_blob("made-blob") as blob:
            with self.assertRaisesRegex(mxfp4_repack.BlobError, "is not the conversion's checkpoint: layer 0 "):
                mxfp4_repack.open_checkpoint(other, conversion=blob.manifest)
            unsure = json.loads(json.dumps(blob.manifest))
            for layer in unsure["layers"]:
                del layer["published"]["sample"]
            with self.assertRaisesRegex(mxfp4_repack.BlobError, "in the manifest, the input has"):
                mxfp4_repack.open_checkpoint(other, conversion=unsure)
        with self.assertRaisesRegex(mxfp4_repack.BlobError, "conversion: "):
            mxfp4_repack.open_checkpoint(source, conversion={"format": "another"})
        with mxfp4_repack.open_blob("made-blob") as blob, self.assertRaises(mxfp4_repack.BlobError):
            mxfp4_repack.open_checkpoint("made-blob", conversion=blob.manifest)

    def test_the_library_decides(self):
        """Facts in every form that convert() takes; and what it refuses."""
        source = blob_maker.model("made-decided", layers=2, experts=3, hidden=320, inter=352)
        for flags in ({"arch": "H100", "moe_backend": "marlin", "libs": "none", "layers": "1"},
                      {"platform": "cuda", "arch": "sm90", "backend": "MARLIN", "knob": ["params_dtype=float16"],
                       "libs": ["flashinfer"], "layers": [0]},
                      {"arch": "sm80", "revision": "0.33.0", "pad": "512x384", "backend": "MARLIN", "env": {"VLLM_BATCH_INVARIANT": 1}}):
            with self.subTest(**flags):
                self.convert(source, **flags)
                self.compare(source, **flags)
        for code, kind, flags in ((4, "unsupported", {"arch": "sm70"}), (2, "usage", {"arch": "no machine"}),
                                  (2, "usage", {"arch": "sm90", "backend": "NONE_SUCH"}),
                                  (2, "usage", {"arch": "sm90", "rank": 3}), (2, "usage", {"arch": "sm90", "env": "A"}),
                                  (2, "usage", {"arch": "sm90", "layers": "x"}),
                                  (2, "usage", {"arch": "sm90", "include_rest": True})):
            with self.subTest(**flags), self.assertRaises(mxfp4_repack.CommandError) as refused:
                mxfp4_repack.open_checkpoint(source, **flags)
            self.assertEqual((refused.exception.exit_code, refused.exception.kind), (code, kind))
        with self.assertRaises(mxfp4_repack.ArgumentError):
            mxfp4_repack.open_checkpoint(source, arch="sm90", target="no-such-file")

    def test_cancelled(self):
        source = blob_maker.model("made-one", layers=1, experts=3, hidden=320, inter=352)
        with mxfp4_repack.open_checkpoint(source, backend="MARLIN", arch="sm90") as made, made.layer(0) as layer:
            size, blob = layer.info("w13_weight").nbytes, layer._file.blob()
            out, cancel = np.empty(size, "u1"), ctypes.c_int32(1)
            options = structures.ReadOptions(ctypes.sizeof(structures.ReadOptions), threads=2,
                                          cancel=ctypes.addressof(cancel))
            request = structures.Request(0, layer.tensors.index("w13_weight"), 0, out.ctypes.data, size)
            status = blob.functions.mxfp4_repack_read(blob.handle, ctypes.byref(request), 1, ctypes.byref(options))
            self.assertEqual(status, CANCELLED)


def make_loaded(path, family, input_scales, hidden, inter):
    """A layer as the engine holds it before a backend rearranges it."""
    experts = 3
    draw = np.random.default_rng(5)
    prefix = "model.layers.0.mlp.experts."
    tensors = {
        "w13_weight": ("U8", draw.integers(0, 256, (experts, 2 * inter, hidden // 2), dtype="u1")),
        "w2_weight": ("U8", draw.integers(0, 256, (experts, hidden, inter // 2), dtype="u1")),
        "w13_weight_scale": ("U8", draw.integers(118, 126, (experts, 2 * inter, hidden // 32), dtype="u1")),
        "w2_weight_scale": ("U8", draw.integers(118, 126, (experts, hidden, inter // 32), dtype="u1")),
        "w13_bias": ("BF16", draw.integers(0x3C00, 0x3F00, (experts, 2 * inter), dtype="u2")),
        "w2_bias": ("BF16", draw.integers(0x3C00, 0x3F00, (experts, hidden), dtype="u2"))}
    if input_scales:
        tensors.update({name: ("F32", np.full(experts, 0.5, "f4")) for name in ("w13_input_scale", "w2_input_scale")})
    layer_files.write(path, {prefix + name: tensor for name, tensor in tensors.items()}, {"family": family})


if __name__ == "__main__":
    unittest.main()
