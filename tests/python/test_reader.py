"""What the program packs comes back through the reader, of every backend and two revisions."""
import json
import os
import pickle
import shutil
import subprocess
import unittest

import numpy as np

import blob_maker
import layer_files
import mxfp4_repack
from blob_maker import PREFIX


def stored(layer, name):
    return np.ascontiguousarray(layer.numpy(name, stored=True)).tobytes()


def over_file(info, data):
    """The tensor that info describes, taken from the file's bytes by an index for every element."""
    array = np.frombuffer(data, f"V{info.nbytes // max(1, np.prod(info.file_shape, dtype=int))}")
    at = np.zeros(info.shape, int)
    for axis, (size, step) in enumerate(zip(info.shape, info.strides)):
        at += (np.arange(size) * step).reshape([-1 if i == axis else 1 for i in range(at.ndim)])
    return array[at]


class EveryBackend(unittest.TestCase):
    """The reader against an independent reading of the uncompressed file."""

    REFUSED = {("HUMMING", blob_maker.NEWER)}  # bytes never executed

    def test_both_revisions(self):
        model = blob_maker.model("square", layers=2, experts=4, hidden=256, inter=256)
        for revision in ("vllm-2026-05-18", blob_maker.NEWER):
            for backend in blob_maker.ARCHES:
                if (backend, revision) in self.REFUSED:
                    with self.assertRaisesRegex(AssertionError, "exit 4"):
                        blob_maker.convert(model, "plain", backend, "--revision", revision)
                    continue
                with self.subTest(backend, revision=revision):
                    source = model
                    if backend == "AITER_MXFP4_FP8":
                        source = str(blob_maker.TESTDATA / "ingest" / "quark_gptoss_w4a8")
                    for out, method in (("plain", "none"), ("packed", "zstd")):
                        shutil.rmtree(out, ignore_errors=True)
                        blob_maker.convert(source, out, backend, "--revision", revision,
                                           "--compress", method)
                    self.compare("plain", "packed")

    def compare(self, plain, packed):
        with mxfp4_repack.open_blob(plain) as one, mxfp4_repack.open_blob(packed) as two:
            self.assertEqual(one.layers, two.layers)
            self.assertGreater(len(one.layers), 0)
            two.verify()
            for prefix in one.layers:
                wanted, _ = layer_files.read(one.file_of(prefix))
                for blob in (one, two):
                    with blob.layer(prefix) as layer:
                        self.assertEqual(set(layer.tensors),
                                         {name[len(prefix) + 1:] for name in wanted})
                        for name in layer.tensors:
                            self.tensor(layer, name, wanted[f"{prefix}.{name}"])

    def tensor(self, layer, name, want):
        info, whole = layer.info(name), layer.numpy(name)
        self.assertEqual(stored(layer, name), want.tobytes(), name)
        self.assertEqual(whole.shape, info.shape)
        self.assertEqual(whole.strides, tuple(step * whole.itemsize for step in info.strides))
        self.assertEqual(whole.tobytes(), over_file(info, want.tobytes()).tobytes(), name)
        if info.file_shape[:1] != (layer.num_experts,):
            with self.assertRaises(mxfp4_repack.NotFoundError):
                layer.numpy(name, expert=0)
            return
        for expert in range(layer.num_experts):
            one = layer.numpy(name, expert=expert)
            self.assertEqual(one.shape, whole.shape[1:])
            self.assertTrue(np.array_equal(one, whole[expert]), name)
            self.assertTrue(np.array_equal(layer.numpy(name, expert=expert, stored=True),
                                           want[expert]), name)


class Opening(unittest.TestCase):
    def test_a_pickled_blob_is_opened_again(self):
        model = blob_maker.model("pickled_model", layers=1)
        blob_maker.convert(model, "pickled", "TRITON")
        with mxfp4_repack.open_blob("pickled", check="checksums") as one, \
                mxfp4_repack.open_checkpoint(model, arch="sm90", backend="TRITON") as made:
            for blob in (one, made):
                with pickle.loads(pickle.dumps(blob)) as again:
                    self.assertEqual(again.manifest, blob.manifest)
                    with blob[0] as layer, again[0] as same:
                        self.assertEqual(stored(layer, "w2_weight"), stored(same, "w2_weight"))

    def test_ranks(self):
        blob_maker.convert(blob_maker.model("small"), "ranks", "MARLIN", "--tp-size", "2")
        with self.assertRaisesRegex(mxfp4_repack.RankError, r"holds ranks \[0, 1\]; say which"):
            mxfp4_repack.open_blob("ranks")
        with self.assertRaisesRegex(mxfp4_repack.RankError, "rank 2 is not there"):
            mxfp4_repack.open_blob("ranks", rank=2)
        for rank in (0, 1):
            with mxfp4_repack.open_blob("ranks", rank=rank) as blob:
                self.assertEqual((blob.rank, blob.ranks), (rank, 2))
                blob.verify()
            directory = f"ranks/rank-{rank:02}-of-02"
            self.assertEqual(mxfp4_repack.open_blob(directory).rank, rank)
            with self.assertRaisesRegex(mxfp4_repack.RankError, f"is rank {rank} of 2, not"):
                mxfp4_repack.open_blob(directory, rank=1 - rank)
        os.rename("ranks/rank-00-of-02", "ranks/rank-02-of-02")
        os.rename("ranks/rank-01-of-02", "ranks/rank-00-of-02")
        with self.assertRaises(mxfp4_repack.RankError):
            mxfp4_repack.open_blob("ranks", rank=0)
        with self.assertRaises(mxfp4_repack.MismatchError):
            mxfp4_repack.open_blob("ranks/rank-00-of-02")
        shutil.rmtree("ranks")



class LittleIsDecoded(unittest.TestCase):
    def test_one_expert_under_one_percent(self):
        # Sparse zeros of 320 MB: what is decoded does not depend on the bytes.
        experts, hidden, inter = 128, 1280, 1280
        shapes = {"w13_weight": (experts, 2 * inter, hidden // 2),
                  "w2_weight": (experts, hidden, inter // 2),
                  "w13_weight_scale": (experts, 2 * inter, hidden // 32),
                  "w2_weight_scale": (experts, hidden, inter // 32)}
        header, at = {"__metadata__": {"family": "gpt_oss"}}, 0
        for name, shape in shapes.items():
            end = at + int(np.prod(shape))
            header[f"{PREFIX}.{name}"] = {"dtype": "U8", "shape": shape, "data_offsets": [at, end]}
            at = end
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 4096 - 8)
        with open("large.safetensors", "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            file.truncate(8 + len(text) + at)
        blob_maker.convert("large.safetensors", "large", "TRITON")
        with mxfp4_repack.open_blob("large") as blob, blob.layer(PREFIX) as layer:
            total = sum(layer.info(name).nbytes for name in layer.tensors)
            self.assertGreater(total, 300 << 20)
            one = layer.numpy("w13_weight", expert=77)
            self.assertEqual(one.nbytes * experts, layer.info("w13_weight").nbytes)


class Revisions(unittest.TestCase):
    def test_the_plugin_knows_what_the_program_knows(self):
        """vllm/revisions.json names the same revisions and kernel libraries as the program."""
        done = subprocess.run([blob_maker.BIN, "list", "revisions", "--engine", "vllm", "--json"],
                              check=True, stdout=subprocess.PIPE)
        program = {row["revision"]: row["kernel_libraries"]
                   for row in json.loads(done.stdout)["revisions"]}
        with open(os.path.join(os.path.dirname(mxfp4_repack.__file__), "vllm",
                               "revisions.json"), encoding="utf-8") as file:
            plugin = json.load(file)
        for name, row in plugin.items():
            libraries = ", ".join(" ".join(item) for item in row["kernel_libraries"].items())
            self.assertEqual(libraries, program.get(name), name)
        self.assertEqual(set(plugin), set(program))

    def test_the_plugin_knows_what_layouts_were_tested_with(self):
        """plugin/tested.json is what `list layouts` says."""
        done = subprocess.run([blob_maker.BIN, "list", "layouts", "--json"], check=True,
                              stdout=subprocess.PIPE)
        with open(os.path.join(os.path.dirname(mxfp4_repack.__file__), "plugin", "tested.json"),
                  encoding="utf-8") as file:
            self.assertEqual(json.load(file), {row["id"]: row["tested_with"] for row in
                                               json.loads(done.stdout)["layouts"]
                                               if row["tested_with"]})


if __name__ == "__main__":
    unittest.main()
