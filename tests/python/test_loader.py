"""to_device() against numpy(); the ring of the GPU path with stand-ins for CUDA's objects."""
import contextlib
import os
import unittest
from unittest import mock

import numpy as np

import blob_maker
import mxfp4_repack

try:
    import torch
    import mxfp4_repack_loader as loader
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

    def test_small_pieces(self):
        for threads, slot_bytes in ((1, 1000), (3, 64), (8, 1 << 20)):
            small = loader.Loader("cpu", threads=threads, slot_bytes=slot_bytes)
            for layer in self.layers:
                self.compare(layer, small.load(layer))
            small.close()

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
    """Done when the copy it was recorded after was made: at synchronize(), or when asked a while."""

    def __init__(self):
        self.copies, self.asked = [], 0

    def record(self, stream):
        self.copies, stream.waiting = stream.waiting, []
        self.asked = 0

    def query(self):
        self.asked += 1
        if self.asked < 4:
            return False
        self.synchronize()
        return True

    def synchronize(self):
        for copy in self.copies:
            copy()
        self.copies = []


class StandInStream:
    def __init__(self):
        self.waiting = []

    def wait_stream(self, other):
        pass

    def synchronize(self):
        for event in StandInCuda.events:
            event.synchronize()


class StandInCuda:
    """Patches torch so that a "GPU" is memory here, and its copies are as late as they may be."""

    events = []

    def __init__(self, stack):
        def event():
            StandInCuda.events.append(StandInEvent())
            return StandInCuda.events[-1]

        stream = StandInStream()
        real_empty, real_copy = torch.empty, torch.Tensor.copy_
        StandInCuda.events = []
        self.pinned = []

        def empty(size, *, dtype, device=None, pin_memory=False):
            tensor = real_empty(size, dtype=dtype)
            if pin_memory:
                self.pinned.append(tensor)
            return tensor

        def copy(target, source, non_blocking=False):
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


class Ring(Blobs):
    def test_slots_are_reused_only_when_free(self):
        for slot_bytes in (100, 4096, 1 << 20):
            for layer in self.layers:
                with contextlib.ExitStack() as stack:
                    cuda = StandInCuda(stack)
                    # One thread: the stand-in's stream has no lock.
                    ring = loader.Loader("cuda", threads=1, slot_bytes=slot_bytes)
                    tensors = ring.load(layer)
                    again = ring.load(layer)
                    ring.close()
                    self.assertEqual(sum(pin.numel() for pin in cuda.pinned), 2 * slot_bytes)
                self.compare(layer, tensors)
                self.compare(layer, again)


if __name__ == "__main__":
    unittest.main()
