"""A blob belongs to its checkpoint: pairs of a blob and a checkpoint of equal names and sizes, drawn. What a trainer, a
new revision or an exchanged layer makes of a checkpoint is found; a copy of it is taken. MXFP4_PAIRS says how many."""
import contextlib
import hashlib
import json
import os
import shutil
import struct
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import numpy as np

import blob_maker
import mxfp4_repack
from mxfp4_repack import MismatchError
from mxfp4_repack.native import require_same_checkpoint
from mxfp4_repack.plugin import checkpoint
from mxfp4_repack.plugin.facts import Mismatch
from mxfp4_repack.plugin.live import Origin

PAIRS = int(os.environ.get("MXFP4_PAIRS", 60))
SEED = int(os.environ.get("MXFP4_SEED", 63))
PLACES, BYTES, STEP = 4, 2048, 64  # of formats/conversion/source_sample.hpp
# What is done to the checkpoint -> whether another one results. None: it may be seen or not.
KINDS = {"seed": True, "epoch": True, "layer": True, "copy": False, "touched": False, "moved": False, "hub": False,
         "byte": None}


def tensors_of(path):
    """[(name, offset, bytes)] of a safetensors file's tensors."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
    header.pop("__metadata__", None)
    return [(name, 8 + length + at["data_offsets"][0], at["data_offsets"][1] - at["data_offsets"][0])
            for name, at in header.items()]


class Model:
    """A copy of a checkpoint whose experts can be changed in place."""

    def __init__(self, directory):
        self.directory = directory
        self.experts = [(path, name, offset, size) for path in sorted(Path(directory).glob("*.safetensors"))
                        for name, offset, size in tensors_of(path) if ".experts" in name and size > 64]
        self.codes = [one for one in self.experts if one[3] == max(other[3] for other in self.experts)]

    @staticmethod
    def bytes_of(tensor):
        path, _, offset, size = tensor
        return np.memmap(path, "u1", "r+", offset, size)

    def layers(self):
        """{layer's number: its tensors}, by name."""
        found = {}
        for one in self.experts:
            found.setdefault(one[1].split(".layers.")[1].split(".")[0], []).append(one)
        return {layer: sorted(tensors, key=lambda one: one[1]) for layer, tensors in found.items()}


def change(model, kind, random):
    if kind == "seed":
        for one in model.experts:
            model.bytes_of(one)[:] = random.integers(0, 128, one[3], "u1")
    elif kind == "epoch":  # a thousandth of the codes
        for one in model.codes:
            data = model.bytes_of(one)
            chosen = random.random(one[3] * 2) < 0.001
            data ^= chosen[::2] * np.uint8(1) | chosen[1::2] * np.uint8(16)
    elif kind == "layer":
        first, second = (tensors for _, tensors in list(model.layers().items())[:2])
        for one, other in zip(first, second):
            kept = model.bytes_of(one).copy()
            model.bytes_of(one)[:] = model.bytes_of(other)
            model.bytes_of(other)[:] = kept
    elif kind == "byte":
        one = model.codes[random.integers(len(model.codes))]
        model.bytes_of(one)[random.integers(one[3])] ^= 1
    elif kind == "touched":
        for path in Path(model.directory).iterdir():
            os.utime(path, ns=(0, 2**61))


def in_hub_form(directory, root):
    """The directory's files as the hub's cache has them; the snapshot."""
    snapshot, blobs = Path(root, "snapshots", "c0ffee"), Path(root, "blobs")
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    for path in Path(directory).iterdir():
        name = hashlib.sha256(path.read_bytes()).hexdigest()
        shutil.copyfile(path, blobs / name)
        (snapshot / path.name).symlink_to(f"../../blobs/{name}")
    return str(snapshot)


def probability(model):
    """Of finding one changed byte of the largest tensors."""
    size = model.codes[0][3]
    tensors = len(model.codes) / len({one[1].rpartition(".experts.")[2].lstrip("0123456789.") for one in model.codes})
    per_layer = tensors / len(model.layers())
    return 1 - (1 - min(BYTES, size) / size / per_layer) ** PLACES


class Identity(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)

    def base(self, name, source, *flags):
        """(checkpoint, manifest's directory) of a blob."""
        blob = os.path.join(self.scratch.name, name)
        blob_maker.run("convert", source, "-o", blob, "--arch", "sm90", "-q", *flags)
        return source, blob

    def test_pairs(self):
        stacked = blob_maker.model("identity", 3, 4, 256, 256)
        bases = [self.base("stacked", stacked, "--tp-size", 1), self.base("parts", stacked, "--compress", "none"),
                 self.base("single", str(blob_maker.TESTDATA / "ingest" / "ct_mxfp4"))]
        random = np.random.default_rng(SEED)
        seen, seconds, likely = {kind: [] for kind in KINDS}, [], []
        for number in range(PAIRS):
            source, blob = bases[number // len(KINDS) % len(bases)]
            kind = list(KINDS)[number % len(KINDS)]
            directory = shutil.copytree(source, os.path.join(self.scratch.name, f"pair{number}"),
                                        copy_function=shutil.copy)
            model = Model(directory)
            if kind == "layer" and len(model.layers()) < 2:
                source, blob = bases[0]
                shutil.rmtree(directory)
                model = Model(shutil.copytree(source, directory))
            change(model, kind, random)
            if kind == "byte":
                likely.append(probability(model))
            if kind == "moved":
                directory = shutil.move(directory, directory + " moved")
            if kind == "hub":
                directory = in_hub_form(directory, directory + "hub")
            with open(os.path.join(blob, "mxfp4_repack.json")) as file:
                manifest = json.load(file)
            begun = time.monotonic()
            try:
                checkpoint.compare_source(manifest, blob, Origin(model=directory))
                found = False
            except Mismatch as mismatch:
                self.assertRegex(str(mismatch), "is not the one that was converted")
                found = True
            seconds.append(time.monotonic() - begun)
            seen[kind].append(found)
            if KINDS[kind] is not None:
                self.assertEqual(found, KINDS[kind], f"pair {number} of seed {SEED}: {kind}")
            shutil.rmtree(directory)
        print({kind: f"{sum(found)} of {len(found)}" for kind, found in seen.items()},
              f"one byte is found with {np.mean(likely):.3f}; {1000 * np.median(seconds):.1f} ms each", flush=True)

    def test_hub_names_are_exact(self):
        """A changed byte that no sample sees is another file in the hub's cache."""
        source = blob_maker.model("identity", 3, 4, 256, 256)
        first = in_hub_form(source, os.path.join(self.scratch.name, "first"))
        _, blob = self.base("hub", first)
        manifest = Path(blob, "mxfp4_repack.json").read_bytes()
        self.assertIn(b'"sha256"', manifest)
        for found in first, source:
            require_same_checkpoint(found, manifest)
        model = Model(shutil.copytree(source, os.path.join(self.scratch.name, "edited")))
        for offset in range(model.codes[0][3]):  # until the sample does not see it
            model.bytes_of(model.codes[0])[offset] ^= 1
            try:
                require_same_checkpoint(model.directory, manifest)
                break
            except MismatchError:
                model.bytes_of(model.codes[0])[offset] ^= 1
        with self.assertRaisesRegex(MismatchError, "model.safetensors is not the one that was converted"):
            require_same_checkpoint(in_hub_form(model.directory, os.path.join(self.scratch.name, "second")), manifest)

    def test_blob_of_a_blob(self):
        """It has the first one's samples, also in a layout that gives other bytes back."""
        source = blob_maker.model("identity", 3, 4, 256, 256)
        _, first = self.base("first", source)
        _, second = self.base("second", first, "--tp-size", 2)
        samples = []
        for directory in first, os.path.join(second, "rank-01-of-02"):
            manifest = Path(directory, "mxfp4_repack.json").read_bytes()
            require_same_checkpoint(source, manifest)
            samples.append([layer["published"]["sample"] for layer in json.loads(manifest)["layers"]])
        self.assertEqual(samples[0], samples[1])
        self.assertEqual(len(set(samples[0])), 3)

    def test_blob_in_a_checkpoint(self):
        """A blob in a checkpoint's folder is that checkpoint's, or is not taken."""
        _, blob = self.base("inside", blob_maker.model("identity", 3, 4, 256, 256))
        for seed, taken in (1, True), (2, False):
            model = os.path.join(self.scratch.name, f"model{seed}")
            shutil.copytree(blob_maker.model("identity", 3, 4, 256, 256), model)
            if not taken:
                change(Model(model), "layer", None)
            shutil.copytree(blob, os.path.join(model, "mxfp4_repack"))
            with self.subTest(model=seed), contextlib.ExitStack() as refused:
                if not taken:
                    refused.enter_context(self.assertRaisesRegex(MismatchError, "is not the blob's checkpoint"))
                self.assertEqual(len(mxfp4_repack.open_blob(model)), 3)
            mxfp4_repack.open_blob(os.path.join(model, "mxfp4_repack")).verify()
            for command in ["verify"], ["fits", "--arch", "sm90"], ["unpack", "-o", model + "-unpacked"]:
                done = subprocess.run([os.environ["BIN"], command[0], model, *command[1:]], capture_output=True, text=True)
                self.assertEqual(done.returncode == 0, taken, done)
                self.assertEqual("is not the one that" in done.stdout + done.stderr, not taken, done)

    def test_blob_without_samples(self):
        """Is not served beside a checkpoint unless the user says that it is its blob."""
        model = blob_maker.model("identity", 3, 4, 256, 256)
        blob_maker.run("convert", model, "-o", "nothing-said", "--arch", "sm90", "-q")
        with open("nothing-said/mxfp4_repack.json", encoding="utf-8") as file:
            manifest = json.load(file)
        for layer in manifest["layers"]:
            del layer["published"]
        with self.assertRaisesRegex(MismatchError, "says nothing of its checkpoint"):
            require_same_checkpoint(model, json.dumps(manifest).encode())


if __name__ == "__main__":
    unittest.main()
