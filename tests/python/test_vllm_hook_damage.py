"""A blob that is missing, unfinished or damaged ends in vLLM's own conversion, untouched."""
import glob
import os
import unittest

from edited_blob import edit_manifest
from fall_back import CASE, FallBack
from hook_env import copied, golden, make_blob


class Damage(FallBack):
    def test_no_blob(self):
        made = make_blob(golden(CASE))
        self.refused("NotABlobError|no mxfp4_repack.json", (made[0], made[0]))

    def test_unfinished(self):
        model, blob = copied(make_blob(golden(CASE)))
        os.remove(os.path.join(blob, "mxfp4_repack.json"))
        self.refused("not finished", (model, blob))

    def test_manifest_was_edited(self):
        model, blob = copied(make_blob(golden(CASE)))
        path = os.path.join(blob, "mxfp4_repack.json")
        with open(path) as file:
            text = file.read()
        with open(path, "w") as file:
            file.write(text.replace('"x86_64"', '"x86_46"'))
        self.refused("mxfp4_repack.json", (model, blob))

    def test_truncated_file(self):
        model, blob = copied(make_blob(golden(CASE)))
        (path,) = glob.glob(os.path.join(blob, "layer-*"))
        os.truncate(path, os.path.getsize(path) - 1)
        self.refused("bytes", (model, blob))

    def test_missing_file(self):
        model, blob = copied(make_blob(golden(CASE)))
        os.remove(glob.glob(os.path.join(blob, "layer-*"))[0])
        self.refused("layer-00000", (model, blob))

    def test_missing_layer(self):
        self.refused("layer: the blob has none of this name, vLLM has "
                     "model.layers.7.mlp.experts",
                     layer_facts={"name": "model.layers.7.mlp.experts"})

    def test_flipped_bit_in_a_plain_file(self):
        model, blob = copied(make_blob(golden(CASE)))
        (path,) = glob.glob(os.path.join(blob, "layer-*"))
        self.flip(path, os.path.getsize(path) - 5)
        self.refused("ChecksumError", (model, blob),
                     environment={"MXFP4_REPACK_CHECK": "checksums"})

    def test_flipped_bit_in_a_compressed_file(self):
        model, blob = copied(make_blob(golden(CASE), compress="zstd"))
        (path,) = glob.glob(os.path.join(blob, "layer-*"))
        self.flip(path, os.path.getsize(path) // 2)
        self.refused("ChecksumError", (model, blob))

    def test_flipped_bit_in_a_header(self):
        model, blob = copied(make_blob(golden(CASE)))
        (path,) = glob.glob(os.path.join(blob, "layer-*"))
        self.flip(path, 40)
        self.refused("Error: ", (model, blob))

    @staticmethod
    def flip(path, at):
        with open(path, "r+b") as file:
            file.seek(at)
            byte = file.read(1)[0]
            file.seek(at)
            file.write(bytes([byte ^ 4]))

    def test_tensor_is_missing(self):
        model, blob = copied(make_blob(golden(CASE)))
        edit_manifest(blob, lambda m: m["layers"][0]["tensors"].pop())
        self.refused("Error: ", (model, blob))


if __name__ == "__main__":
    unittest.main()
