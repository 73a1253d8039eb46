"""testdata/releases: blobs that released versions wrote, kept for ever. Program, library and witness read each of them
as it was written, and refuse it with one byte changed."""
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import unittest
from pathlib import Path

import numpy as np

import blob_maker
import layer_files
import mxfp4_repack as reader
import witness

KEPT = blob_maker.TESTDATA / "releases"
CHANGES = Path(os.environ["SOURCE_DIR"]) / ".github/CHANGELOG.md"


def kept_blobs():
    """(directory of a rank's blob, its place below releases/)."""
    found = [Path(path) for path in witness.blobs_at(KEPT)]
    return [(path, str(path.relative_to(KEPT))) for path in found]


def sums_of_library(directory):
    """{tensor: SHA-256} of what the library gives, each tensor compared with the manifest."""
    found = {}
    with reader.open_blob(directory, check="checksums") as blob:
        blob.verify()
        for number in blob.layers:
            with blob.layer(number) as layer:
                for name in layer.tensors:
                    data = np.ascontiguousarray(layer.numpy(name, stored=True)).tobytes()
                    found[f"{layer.prefix}.{name}"] = hashlib.sha256(data).hexdigest()
    return found


def sums_of_files(directory):
    """The same of safetensors files, read by a few lines of Python."""
    found = {}
    for path in sorted(Path(directory).rglob("layer-*.safetensors")):
        for name, array in layer_files.read(str(path))[0].items():
            found[f"{path.relative_to(directory)}/{name}"] = hashlib.sha256(array.tobytes()).hexdigest()
    return found


def refusals(directory):
    """Who refuses the blob."""
    found = set()
    done = subprocess.run([blob_maker.BIN, "verify", directory, "-q", "--some-ranks"], capture_output=True, text=True)
    if done.returncode not in (0, 1, 3):
        raise AssertionError(f"exit {done.returncode}: {done.stderr}")
    if done.returncode:
        found.add("program")
    try:
        sums_of_library(directory)
    except reader.BlobError:
        found.add("library")
    try:
        witness.judge(str(directory))
    except witness.Refused:
        found.add("witness")
    return found


class Kept(unittest.TestCase):
    def test_every_release_has_blobs(self):
        released = re.findall(r"(?m)^## (\d+\.\d+\.\d+) \(\d{4}-\d\d-\d\d\)", CHANGES.read_text(encoding="utf-8"))
        self.assertIn("0.1.0", released)
        for version in released:
            written = {json.loads((path / reader.MANIFEST_NAME).read_text())["tool_version"]
                       for path, place in kept_blobs() if place.startswith(version + "/")}
            self.assertEqual(written, {version})

    def test_all_read_them_alike(self):
        wanted = json.loads((KEPT / "sums.json").read_text())
        self.assertEqual({place for _, place in kept_blobs()}, set(wanted["tensors"]))
        for path, place in kept_blobs():
            with self.subTest(place):
                self.assertEqual(refusals(path), set())
                self.assertEqual(sums_of_library(path), wanted["tensors"][place])

    def test_unpack_gives_what_it_gave(self):
        for place, sums in json.loads((KEPT / "sums.json").read_text())["unpacked"].items():
            with self.subTest(place):
                shutil.rmtree("unpacked", ignore_errors=True)
                blob_maker.run("unpack", KEPT / place, "-o", "unpacked", "-q")
                self.assertEqual(sums_of_files("unpacked"), sums)

    def test_one_changed_byte_is_found_by_all(self):
        seed = int(os.environ.get("MXFP4_SEED", "1"))
        for path, place in kept_blobs():
            for name in sorted(os.listdir(path)):
                drawn = random.Random(f"{seed} {place} {name}")
                want = {"program", "witness", "library"}
                with self.subTest(place=place, file=name, seed=seed):
                    shutil.rmtree("changed", ignore_errors=True)
                    shutil.copytree(path, "changed")
                    file = Path("changed") / name
                    data = bytearray(file.read_bytes())
                    data[drawn.randrange(len(data))] ^= 1 << drawn.randrange(8)
                    file.write_bytes(data)
                    self.assertEqual(refusals("changed"), want)


if __name__ == "__main__":
    unittest.main()
