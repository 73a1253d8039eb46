"""The reader's own XXH3-128 against the library, the program and known values."""
import ctypes
import random
import unittest

import numpy as np

import blob_maker
import mxfp4_repack

# Of xxHash 0.8: byte i of the input is the top byte of PRIME32 * PRIME64^i, its self-test's rule;
# one length or more of every class, and both sides of every limit.
KNOWN = {
    0: "99aa06d3014798d86001c324468d497f", 1: "a6cd5e9392000f6ac44bdff4074eecdb",
    3: "20efc49ff02422ea54247382a8d6b94d", 4: "970d585ac632bf8e2e7d8d6876a39fe9",
    6: "082afe0b8162d12a3e7039bdda43cfc6", 8: "47a7f080d82bb45664c69cab4bb21dc5",
    9: "564ef6078950d457ed7ccbc501eb7501", 12: "6e3efd8fc7802b18061a192713f69ad9",
    16: "c68c368ecf8a9c05562980258a998629", 17: "955fa78643ed3669abbc12d11973d7db",
    81: "4952f58181ab00425e8bafb9f95fb803", 128: "39992220e045260aebb15e34a7fb5ab1",
    129: "03815fc91f1b30b686c9e3bc8f0a3b5c", 222: "337e09641b948717f1aebd597cec6b3a",
    240: "aa4202daa2769dc85c9aae94c8ebe5a0", 241: "99a80ecf0ecfc647c5a639ecd2030e5e",
    403: "1b6de21e332dd73dcdeb804d65c6dea4", 512: "18d2d110dcc9bca1617e49599013cb6b",
    1024: "0d30d24071c64c57dd85c9b5c1109c5c", 1025: "fd3ee4fe7f2954c6d870c0fa13211c6a",
    2048: "f736557fd47073a5dd59e2c3a5f038e0", 2240: "ccb134fbfa7ce49d6e73a90539cf2948",
    2367: "e89c0f6ff369b427cb37aeb9e5d361ed",
}


def pattern(size):
    """xxHash's self-test input."""
    data, value = bytearray(size), 0x9E3779B1
    for i in range(size):
        data[i] = value >> 56
        value = value * 0x9E3779B185EBCA8D & (1 << 64) - 1
    return bytes(data)


def own(data, sizes=None):
    checksum, at = mxfp4_repack._Xxh3(), 0
    for size in sizes or [len(data)]:
        checksum.update(data[at:at + size])
        at += size
    return checksum.hexdigest()


class Library:
    """libxxhash, where it is."""

    class Hash(ctypes.Structure):
        _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]

    def __init__(self):
        self.function = ctypes.CDLL("libxxhash.so.0").XXH3_128bits
        self.function.restype = self.Hash
        self.function.argtypes = [ctypes.c_char_p, ctypes.c_size_t]

    def __call__(self, data):
        found = self.function(data, len(data))
        return f"{found.high:016x}{found.low:016x}"


class Xxh3(unittest.TestCase):
    def test_known_values(self):
        for size, want in KNOWN.items():
            self.assertEqual(own(pattern(size)), want, size)

    def test_every_length_equals_the_library(self):
        try:
            library = Library()
        except OSError:
            self.skipTest("no libxxhash.so.0")
        source = random.Random(1)
        for size in [*range(1100), 2047, 2048, 2049, 3072, 3073, 262144, 262145, 600001]:
            data = source.randbytes(size)
            self.assertEqual(own(data), library(data), size)

    def test_pieces_do_not_matter(self):
        source = random.Random(2)
        for size in (1, 16, 240, 241, 1024, 1025, 4096, 4097, 300001):
            data = source.randbytes(size)
            sizes, left = [], size
            while left:
                sizes.append(min(left, source.choice([1, 63, 64, 65, 1000, 1024, 1025, 9000])))
                left -= sizes[-1]
            self.assertEqual(own(data, sizes), own(data), sizes)

    def test_program_wrote_the_same(self):
        blob_maker.convert(blob_maker.model("small"), "marlin", "MARLIN", "--compress", "none")
        sizes = set()
        with mxfp4_repack.open_blob("marlin") as blob:
            for prefix in blob.layers:
                with blob.layer(prefix) as layer:
                    for name in layer.tensors:
                        data = np.ascontiguousarray(layer.numpy(name, stored=True)).tobytes()
                        self.assertEqual(own(data), layer.info(name).xxh3_128, name)
                        sizes.add(len(data))
                    with open(layer.path, "rb") as file:
                        self.assertEqual(own(file.read()), layer.entry["xxh3_128"])
        self.assertGreaterEqual(len(sizes), 3)


if __name__ == "__main__":
    unittest.main()
