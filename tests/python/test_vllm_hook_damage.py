"""A blob that is missing, unfinished or damaged ends in vLLM's own conversion, untouched."""
import glob
import os
import unittest

from fall_back import CASE, FallBack
from hook_env import copied, golden, make_blob


class Damage(FallBack):
    def test_no_blob(self):
        made = make_blob(golden(CASE))
        self.refused("NotABlobError|no mxfp4_repack.json", (made[0], made[0]))

    def test_missing_layer(self):
        self.refused("layer: the blob has none of this name, vLLM has "
                     "model.layers.7.mlp.experts",
                     layer_facts={"name": "model.layers.7.mlp.experts"})

    def test_flipped_bit_in_a_compressed_file(self):
        model, blob = copied(make_blob(golden(CASE), compress="zstd"))
        (path,) = glob.glob(os.path.join(blob, "layer-*"))
        self.flip(path, os.path.getsize(path) // 2)
        self.refused("ChecksumError", (model, blob))

    @staticmethod
    def flip(path, at):
        with open(path, "r+b") as file:
            file.seek(at)
            byte = file.read(1)[0]
            file.seek(at)
            file.write(bytes([byte ^ 4]))


if __name__ == "__main__":
    unittest.main()
