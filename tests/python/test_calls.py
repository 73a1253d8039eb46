"""The C interface believes no caller: null in any place, numbers without sense, structures of another size. Each call
gives a status of the header's, one line of clean UTF-8 where it fails, and the process lives. MXFP4_SEED (1) draws the
calls; a failure names the last one."""
import ctypes
import os
import random
import subprocess
import sys
import unittest

import blob_maker

NUMBERS = [0, 1, 2, 3, -1, -2, 7, 64, 4096, 1 << 20, (1 << 31) - 1, 1 << 31, -(1 << 31), 1 << 40, (1 << 62) - 1, 1 << 62,
           (1 << 63) - 1, -(1 << 63)]
STATUSES = {0, 2, 3, 4, 6, 7, 8, 9}
ROOM = 1 << 20  # bytes of memory that every call may write to
PATHS = [None, b"", b"zstd", b"plain", b"nothing", b"/x\xff\x1b[2J\nnext", b"a" * 5000, b"zstd/mxfp4_repack.json", b"/dev/null",
         b"\xe2\x80\xa8 \xf0\x9f\x92\xa9\x00more", "\u202egnp.".encode()]
TEXTS = [None, b"", b"{}", b"[" * 100000, b"\xff", b'{"format": "mxfp4-repack", "layers": 5}',
         b'{"backend": "MARLIN", "arch": "sm90"}', b'{"arch": "sm70"}', b'{"rank": -1}']


class Caller:
    def __init__(self, seed):
        self.drawn = random.Random(seed)
        self.library = ctypes.CDLL(os.environ["LOADER"])
        for name in ("last_error", "version", "manifest"):
            getattr(self.library, f"mxfp4_repack_{name}").restype = ctypes.c_char_p
        self.memory = ctypes.create_string_buffer(ROOM)
        self.kept = []
        self.blobs = [None]
        for name in (b"zstd", b"plain"):
            blob = ctypes.c_void_p()
            assert self.library.mxfp4_repack_open(name, None, ctypes.byref(blob)) == 0
            self.blobs.append(blob)

    def pick(self, values):
        return self.drawn.choice(values)

    def number(self):
        return ctypes.c_int64(self.pick(NUMBERS) if self.drawn.random() < 0.6 else self.drawn.randint(0, 3))

    def room(self):
        """A number of bytes that the memory has."""
        return ctypes.c_int64(self.pick([n for n in NUMBERS if n <= ROOM]))

    def place(self):
        """Memory of ROOM bytes, or null."""
        return None if self.drawn.random() < 0.2 else ctypes.cast(self.memory, ctypes.c_void_p)

    def structure(self, *members, whole):
        """Null, or a structure of so many bytes that says it has more, fewer or as many."""
        if self.drawn.random() < 0.2:
            return None
        size = self.pick([whole, whole, whole, 0, 1, 8, 12, whole - 4, -1])
        words = (ctypes.c_int64 * 32)(size, *members)
        self.kept.append(words)
        return words

    def options(self):
        """threads and verify; the pointer `cancel` stays null."""
        threads = self.pick([0, 1, 2, 1024, 1025, -1, -(1 << 31)])
        return self.structure((threads & 0xffffffff) | self.pick([0, 1, 0x7fffffff]) << 32, 0, whole=24)

    def requests(self):
        count = self.drawn.randint(0, 3)
        words = (ctypes.c_int64 * (5 * 4))()
        for at in range(count):
            request = [self.number().value, self.number().value, self.number().value,
                       ctypes.cast(self.memory, ctypes.c_void_p).value if self.drawn.random() < 0.8 else 0,
                       self.room().value]
            words[5 * at:5 * at + 5] = request
        self.kept.append(words)
        return (None if self.drawn.random() < 0.1 else words), ctypes.c_size_t(count if words else 0)

    def answer(self, whole):
        return self.structure(whole=whole)

    def out(self):
        """Where a handle goes, or null."""
        if self.drawn.random() < 0.15:
            return None
        handle = ctypes.c_void_p()
        self.kept.append(handle)
        return ctypes.byref(handle)

    def call(self, name):
        """Arguments of this function, drawn."""
        blob = self.pick(self.blobs)
        number, options = self.number, self.options
        if name == "read" or name == "gpu_read":
            requests, count = self.requests()
            rest = [requests, count if requests else ctypes.c_size_t(self.drawn.randint(0, 2)), options()]
            return [blob, *rest] if name == "read" else [None, blob, *rest]
        if name == "gpu_make":
            return [None, blob, *self.requests(), None, ctypes.c_size_t(self.drawn.randint(0, 1))]
        return {
            "open": lambda: [self.pick(PATHS), self.structure(self.drawn.getrandbits(63), whole=16), self.out()],
            "open_checkpoint": lambda: [self.pick(PATHS), self.pick(TEXTS), self.out()],
            "open_checkpoint_for": lambda: [self.pick(PATHS), self.pick(TEXTS), self.out()],
            "manifest": lambda: [blob, self.pick([None, ctypes.byref(ctypes.c_size_t())])],
            "num_layers": lambda: [blob],
            "get_layer": lambda: [blob, number(), self.answer(64)],
            "get_tensor": lambda: [blob, number(), number(), self.answer(72)],
            "check_file": lambda: [blob, number(), options()],
            "gpu_open": lambda: [ctypes.c_int32(self.pick([0, -1, 99])), self.structure(whole=32), self.out()],
            "close": lambda: [None], "gpu_close": lambda: [None],
        }[name]()

    NAMES = ["open", "open_checkpoint", "open_checkpoint_for", "manifest", "num_layers", "get_layer",
             "get_tensor", "check_file", "gpu_open", "close", "gpu_close", "read", "gpu_read",
             "gpu_make"]
    OPENS = {"open": "close", "open_checkpoint": "close", "open_checkpoint_for": "close", "gpu_open": "gpu_close"}

    def run(self, calls):
        for at in range(calls):
            name = self.pick(self.NAMES)
            arguments = self.call(name)
            print(at, name, [getattr(argument, "value", argument) for argument in arguments], file=sys.stderr, flush=True)
            status = getattr(self.library, f"mxfp4_repack_{name}")(*arguments)
            if name in ("manifest", "num_layers") or name in self.OPENS.values():
                continue
            assert status in STATUSES, status
            text = self.library.mxfp4_repack_last_error()
            if status != 0:
                line = text.decode()  # clean UTF-8
                assert line and line.isprintable() and len(line) < 100000, line
            handle = arguments[-1]
            if name in self.OPENS and handle is not None:
                opened = handle._obj
                assert bool(opened.value) == (status == 0), (status, opened)
                getattr(self.library, f"mxfp4_repack_{self.OPENS[name]}")(opened)
            self.kept.clear()


class Calls(unittest.TestCase):
    def test_drawn_calls(self):
        model = blob_maker.model("model")
        for kind, flags in (("zstd", []), ("plain", ["--compress", "none"])):
            blob_maker.convert(model, kind, "MARLIN", *flags)
        seed = int(os.environ.get("MXFP4_SEED", "1"))
        for drawn in range(seed, seed + 4):
            with open("calls", "w") as words:
                done = subprocess.run([sys.executable, __file__, str(drawn), "1500"], stderr=words, check=False)
            with open("calls", errors="replace") as words:
                self.assertEqual(done.returncode, 0, f"MXFP4_SEED={drawn}: {words.read()[-3000:]}")


if __name__ == "__main__":
    Caller(int(sys.argv[1])).run(int(sys.argv[2]))
