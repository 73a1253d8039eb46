"""A GPU that libmxfp4_repack.so brings tensors to: see native.py."""
from __future__ import annotations

import ctypes
import os
from typing import Any, Mapping, Optional, Sequence, Tuple

from mxfp4_repack import structures
from mxfp4_repack.errors import BlobError, NotFoundError
from mxfp4_repack.native import OK, NativeLayer, library
from mxfp4_repack.structures import POINTER


class NativeGpu:
    """A GPU that the library reads to, with its threads and its pinned ring, until close()."""

    def __init__(self, functions: Any, handle: Any) -> None:
        self.functions, self.handle = functions, handle
        self._process, self._getpid = os.getpid(), os.getpid

    def is_own(self) -> bool:
        """False in a forked child, which has neither the threads nor the right to the driver."""
        return self._getpid() == self._process

    def made_by(self) -> str:
        """Who made what the last reading had to make, for a log; empty where nothing was to be made."""
        return str(self.functions.mxfp4_repack_gpu_made_by(self.handle).decode()) if self.handle else ""

    def close(self) -> None:
        handle, self.handle = self.handle, None
        if handle and self.is_own():
            self.functions.mxfp4_repack_gpu_close(handle)

    def __del__(self) -> None:
        self.close()


def open_gpu(device: int, threads: int, ring_bytes: int, ranks: int = 1, makes: str = "") -> Optional[NativeGpu]:
    """The CUDA GPU of this number. None without a CUDA driver, and when it fails. ranks: processes of this host that
    load at once. makes: who makes what a checkpoint's layout has to make, "cpu", "gpu", or "" for the GPU if it can."""
    functions = library()
    options = structures.GpuOptions(ctypes.sizeof(structures.GpuOptions), threads=threads, ring_bytes=ring_bytes,
                                    ranks=ranks, makes=("", "cpu", "gpu").index(makes))
    handle = POINTER()
    if functions.mxfp4_repack_gpu_open(device, ctypes.byref(options), ctypes.byref(handle)) != OK:
        return None
    return NativeGpu(functions, handle)


def read_to_gpu(layer: NativeLayer, gpu: NativeGpu, tensors: Sequence[int], addresses: Sequence[int]) -> None:
    """Fills the GPU's memory at `addresses`, which no work of the GPU uses meanwhile, with the tensors of these numbers.
    Returns when all bytes have arrived and were compared with the manifest's checksums."""
    blob, requests = layer.blob(), layer.requests(tensors, addresses)
    options = structures.ReadOptions(ctypes.sizeof(structures.ReadOptions), threads=1, verify=1)
    layer.check(blob.functions.mxfp4_repack_gpu_read(gpu.handle, blob.handle, requests, len(tensors), ctypes.byref(options)))


def make_on_gpu(layer: NativeLayer, gpu: Optional[NativeGpu], tensors: Sequence[int], addresses: Sequence[int],
                held: Mapping[str, Tuple[int, int]]) -> None:
    """Makes the tensors of these numbers at `addresses` from the checkpoint's tensors that are held: by name, address
    and bytes. Raises NotFoundError if one is missing, and BlobError where only CPUs can make one; nothing is written
    then, nor without a GPU."""
    blob, requests = layer.blob(), layer.requests(tensors, addresses)
    given = (structures.Held * len(held))(*(
        structures.Held(name.encode(), address, size) for name, (address, size) in held.items()))
    layer.check(blob.functions.mxfp4_repack_gpu_make(gpu and gpu.handle, blob.handle, requests, len(tensors), given, len(held)))


def can_make(layer: NativeLayer, tensors: Sequence[int]) -> bool:
    """Whether a GPU can make these tensors from the checkpoint's."""
    try:
        make_on_gpu(layer, None, tensors, [0] * len(tensors), {})
    except NotFoundError:
        return True
    except BlobError:
        return False
    return True
