"""to_device() against numpy(); the ring of the GPU path with stand-ins for CUDA's objects."""
import contextlib
import itertools
import os
import random
import threading
import time
import unittest
from unittest import mock

import numpy as np

import blob_maker
import mxfp4_repack

try:
    import torch
    from mxfp4_repack import loader
except ImportError:
    torch = loader = None


def as_numpy(tensor):
    """Its elements as bytes, in order of the shape."""
    return tensor.contiguous().view(torch.uint8).numpy().tobytes() if tensor.dim() else \
        tensor.reshape(1).view(torch.uint8).numpy().tobytes()


@unittest.skipIf(torch is None, "torch is not installed")
class Blobs(unittest.TestCase):
    def setUp(self):
        self.layers = []
        for backend in ("TRITON", "FLASHINFER_CUTLASS_MXFP4_BF16", "AITER_MXFP4_BF16"):
            for method in ("none", "zstd"):
                out = f"{backend}-{method}"
                if not os.path.isdir(out):
                    blob_maker.convert(blob_maker.model("small"), out, backend,
                                       "--compress", method)
                blob = mxfp4_repack.open_blob(out)
                self.layers.append(blob.layer(blob.layers[1]))
            made = mxfp4_repack.open_checkpoint("small", conversion=blob.manifest)
            self.layers.append(made.layer(made.layers[1]))
        self.addCleanup(lambda: [layer.close() for layer in self.layers])

    def compare(self, layer, tensors):
        self.assertEqual(tuple(tensors), layer.tensors)
        for name, tensor in tensors.items():
            info = layer.info(name)
            self.assertEqual(tuple(tensor.shape), info.shape, name)
            self.assertEqual(tensor.stride(), info.strides, name)
            self.assertEqual(as_numpy(tensor), layer.numpy(name).tobytes(), name)
            self.assertEqual(tensor.storage_offset(), 0)
            if info.torch_dtype != "float4_e2m1fn_x2":
                self.assertEqual(str(tensor.dtype), f"torch.{info.torch_dtype}")
            for flag in info.flags:
                self.assertIs(getattr(tensor, flag), True)


class Cpu(Blobs):
    def test_equals_numpy(self):
        flags = set()
        for layer in self.layers:
            self.compare(layer, layer.to_device("cpu"))
            self.compare(layer, {name: layer.torch(name) for name in layer.tensors})
            one = layer.torch("w2_weight", expert=2)
            self.assertEqual(as_numpy(one), layer.numpy("w2_weight", expert=2).tobytes())
            flags.update(layer.info("w13_weight").flags)
        self.assertEqual(flags, {"is_shuffled"})
        loader.release()

    def test_prepared(self):
        """load() finds what prepare() made; what it could not make is load()'s error."""
        loader.release()
        loader.prepare("cpu")
        for _ in range(2):
            self.compare(self.layers[0], self.layers[0].to_device("cpu"))
        self.assertEqual(len(loader._loaders), 1)
        loader.release()
        with mock.patch.object(loader, "Loader", side_effect=MemoryError("no ring")) as maker:
            loader.prepare("cpu")
            with self.assertRaisesRegex(MemoryError, "no ring"):
                self.layers[0].to_device("cpu")
            for thread in threading.enumerate():
                if thread.name == "mxfp4-repack-prepare":
                    thread.join()
            self.assertEqual(maker.call_count, 2)
        self.assertEqual(loader._loaders, {})

    def test_threads(self):
        for threads in (1, 3, 8):
            one = loader.Loader("cpu", threads=threads)
            for layer in self.layers:
                self.compare(layer, one.load(layer))
            one.close()

    def test_slack_is_behind_the_tensor(self):
        blob_maker.convert(blob_maker.model("narrow", hidden=64), "narrow-blob", "TRITON")
        with mxfp4_repack.open_blob("narrow-blob") as blob, blob.layer(blob.layers[0]) as layer:
            info = layer.info("w13_weight_scale")
            self.assertEqual(info.slack_bytes, 64)
            for tensor in (layer.torch(info.name), layer.to_device("cpu", [info.name])[info.name]):
                whole = torch.as_strided(tensor, (info.nbytes + 64,), (1,))
                self.assertEqual(whole[info.nbytes:].tolist(), [0] * 64)

    def test_errors_come_out(self):
        for layer in self.layers:
            with self.assertRaises(mxfp4_repack.NotFoundError):
                layer.to_device("cpu", ["w13_weight", "nothing"])
            if os.path.isdir(layer.path):  # made from a checkpoint: test_made has its errors
                continue
            size = os.path.getsize(layer.path)
            with open(layer.path, "rb") as file:
                data = file.read()
            os.truncate(layer.path, size // 2)
            with self.assertRaises(mxfp4_repack.SizeError):
                layer.to_device("cpu")
            with open(layer.path, "r+b") as file:
                file.write(data)
            self.compare(layer, layer.to_device("cpu"))


class StandInEvent:
    """Done when somebody waits for it, no sooner: then the copies before it are made."""

    def __init__(self, cuda):
        self.cuda, self.copies = cuda, []

    def record(self, stream):
        self.cuda.called("record")
        self.copies, stream.waiting = stream.waiting, []

    def synchronize(self):
        self.cuda.called("synchronize")
        self.finish()

    def finish(self):
        for copy in self.copies:
            copy()
        self.copies = []


class StandInStream:
    def __init__(self, cuda):
        self.cuda, self.waiting = cuda, []

    def wait_stream(self, other):
        self.cuda.called("wait_stream")

    def synchronize(self):
        for event in self.cuda.events:
            event.finish()
        self.waiting = []


class StandInCuda:
    """Patches torch so that a "GPU" is memory here, and its copies are as late as they may be.

    fail = (what, n, error): the n-th call of what raises. pause: seconds that each call may take.
    """

    def __init__(self, stack, pause=0.0):
        def event():
            self.events.append(StandInEvent(self))
            return self.events[-1]

        stream = StandInStream(self)
        real_empty, real_copy = torch.empty, torch.Tensor.copy_
        self.events, self.pinned = [], []
        self.fail, self.calls, self.pause = None, {}, pause
        self.thread = threading.get_ident()
        self.random = random.Random(1)

        def empty(size, *, dtype, device=None, pin_memory=False):
            if not pin_memory:
                self.called("empty")
            tensor = real_empty(size, dtype=dtype)
            if pin_memory:
                self.pinned.append(tensor)
            return tensor

        def copy(target, source, non_blocking=False):
            self.called("copy_")
            assert non_blocking and any(
                0 <= source.data_ptr() - pin.data_ptr() < pin.numel() for pin in self.pinned)
            stream.waiting.append(lambda: real_copy(target, source))

        for name, value in {"cuda.Event": event, "cuda.Stream": lambda: stream, "empty": empty,
                            "cuda.device": lambda device: contextlib.nullcontext(),
                            "cuda.stream": lambda stream: contextlib.nullcontext(),
                            "cuda.current_device": lambda: 0,
                            "cuda.current_stream": lambda device: None}.items():
            stack.enter_context(mock.patch(f"torch.{name}", value))
        stack.enter_context(mock.patch.object(torch.Tensor, "copy_", copy))

    def called(self, what):
        """Notes a call of torch, which must come from the one thread; waits or fails as it was told."""
        assert threading.get_ident() == self.thread, f"{what} in another thread"
        at = self.calls[what] = self.calls.get(what, -1) + 1
        if self.pause:
            time.sleep(self.random.random() * self.pause)
        if self.fail is not None and self.fail[:2] == (what, at):
            raise self.fail[2]


class Unwilling:
    """A layer whose n-th part cannot be read."""

    def __init__(self, layer, fail_at):
        self.layer, self.fail_at = layer, fail_at

    def __getattr__(self, name):
        return getattr(self.layer, name)

    def read_through(self, *arguments):
        for at, part in enumerate(self.layer.read_through(*arguments)):
            if at == self.fail_at:
                raise mxfp4_repack.ReadError(self.layer.path, "", "no more")
            yield part


class Ring(Blobs):
    """A hang here ends with the stacks of all threads: see run beside this file."""

    def test_memory_is_reused_only_when_it_is_free(self):
        for threads, ring_bytes in ((1, 800), (2, 1 << 20), (7, 4096), (3, 70001)):
            for layer in self.layers:
                with contextlib.ExitStack() as stack:
                    cuda = StandInCuda(stack)
                    ring = loader.Loader("cuda", threads=threads, ring_bytes=ring_bytes)
                    tensors = ring.load(layer)
                    again = ring.load(layer)
                    ring.close()
                    self.assertEqual([pin.numel() for pin in cuda.pinned], [ring_bytes])
                self.compare(layer, tensors)
                self.compare(layer, again)

    def fails(self, cuda, ring, layer, kind):
        """A load fails, and one after it does not."""
        with self.assertRaises(kind):
            ring.load(layer)
        cuda.fail = None
        return ring.load(self.layers[0])

    def test_failing_copies(self):
        count = len(self.layers[0].tensors)
        for what, at in (("empty", 0), ("empty", count - 1), ("wait_stream", 0), ("copy_", 0),
                         ("copy_", 1), ("copy_", 13), ("copy_", 40), ("record", 0), ("record", 25),
                         ("synchronize", 0), ("synchronize", 9)):
            for threads, kind in ((1, RuntimeError), (3, KeyboardInterrupt), (8, RuntimeError)):
                with self.subTest(what=what, at=at, threads=threads), \
                        contextlib.ExitStack() as stack:
                    cuda = StandInCuda(stack)
                    ring = loader.Loader("cuda", threads=threads, ring_bytes=8000)
                    cuda.fail = (what, at, kind("no " + what))
                    tensors = self.fails(cuda, ring, self.layers[0], kind)
                    ring.close()
                self.compare(self.layers[0], tensors)

    def test_failing_reads(self):
        for threads, at in itertools.product((1, 8), (0, 1, 5, 50)):
            with self.subTest(threads=threads, at=at), contextlib.ExitStack() as stack:
                cuda = StandInCuda(stack)
                ring = loader.Loader("cuda", threads=threads, ring_bytes=8000)
                tensors = self.fails(cuda, ring, Unwilling(self.layers[0], at),
                                     mxfp4_repack.ReadError)
                ring.close()
            self.compare(self.layers[0], tensors)


if __name__ == "__main__":
    unittest.main()
