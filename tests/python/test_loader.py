"""to_device() against numpy(). The way to a GPU: tests/capi/gpu.sh, with a driver of its own."""
import os
import threading
import unittest
from unittest import mock

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

    def test_a_device_that_the_library_has_no_way_to(self):
        """Each tensor goes by way of the CPU's memory."""
        for tensors in (self.layers[0].to_device("meta"), self.layers[1].to_device("meta")):
            for name, tensor in tensors.items():
                info = self.layers[0].info(name)
                self.assertEqual((tensor.device.type, tuple(tensor.shape), tensor.stride()), ("meta", info.shape, info.strides))
        loader.release()

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


if __name__ == "__main__":
    unittest.main()
