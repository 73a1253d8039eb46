"""Moves layers of a blob to a device with torch: Layer.to_device().

To an NVIDIA GPU libmxfp4_repack.so does it alone: its threads read, or decode, into a pinned ring that
is made once and used for every layer, and hand what is full to the GPU's copy engine. The GPU sums what has arrived, and the sums are compared with the manifest's
checksums. No thread needs the interpreter's lock.

The tensors are allocated once, at their final size; no other GPU memory is used. To the CPU the threads write
straight into the tensors. To another GPU, or without CUDA's driver, each tensor goes by way of the CPU.
"""
from __future__ import annotations

import contextlib
import os
import re
import threading
from typing import Any, Dict, Mapping, Optional, Sequence

import torch

from mxfp4_repack.errors import DependencyError
from mxfp4_repack.native_gpu import NativeGpu, open_gpu
from mxfp4_repack.readers import readers_of_rank
from mxfp4_repack.tensors import TensorInfo, tensor_view

__all__ = ["Loader", "load", "load_into", "prepare", "release"]

DEFAULT_RING_BYTES = 64 << 20

Layer = Any  # of layer.py, which imports this module
Flats = Mapping[str, torch.Tensor]  # uint8, what tensors lie in, by the tensors' names


def _ranks() -> int:
    """Processes of this host that load beside each other, as far as torch or its launcher says."""
    found = os.environ.get("LOCAL_WORLD_SIZE", "")
    if re.fullmatch("[0-9]{1,5}", found):  # a number of processes; whatever else it is says nothing
        return int(found)
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        ranks = torch.distributed.get_world_size()
        return min(ranks, torch.cuda.device_count() or ranks)  # on CPUs all of them are here
    return 1


def _allocate(infos: Sequence[TensorInfo], device: Any) -> Dict[str, torch.Tensor]:
    """The flat bytes that each tensor lies in, not filled, info.slack_bytes longer."""
    return {info.name: torch.empty(info.nbytes + info.slack_bytes, dtype=torch.uint8, device=device)
            for info in infos}


def _views(layer: Layer, infos: Sequence[TensorInfo], flats: "Flats") -> Dict[str, torch.Tensor]:
    return {info.name: tensor_view(info, flats[info.name], layer.path) for info in infos}


class Loader:
    """Loads layers to one device. The ring lives until close(); a load after it makes another.

    threads: readers, readers_of_rank() of them by default.
    ring_bytes: pinned memory for a GPU. One load() runs at a time; others wait.
    makes: who makes what is not in a blob, "cpu", "gpu" (an error where it has no memory for that), or "" for
    the GPU if it can; None: what let_make() said.
    """

    def __init__(self, device: Any, *, threads: Optional[int] = None,
                 ring_bytes: int = DEFAULT_RING_BYTES, makes: Optional[str] = None) -> None:
        self.device = torch.device(device)
        self._ranks = _ranks()
        self.threads = threads or readers_of_rank(self._ranks)
        self.ring_bytes, self.makes = ring_bytes, _makes if makes is None else makes
        self.made_by = ""  # who did so last, for a log
        self._lock = threading.Lock()
        self._gpu: Optional[NativeGpu] = None
        if self.device.type == "cuda":
            with torch.cuda.device(self.device):
                self.device = torch.device("cuda", torch.cuda.current_device())
            self._open_gpu()

    def _open_gpu(self) -> None:
        if torch.version.hip is None:
            self._gpu = open_gpu(self.device.index, self.threads, self.ring_bytes, ranks=self._ranks,
                                 makes=self.makes)

    @property
    def direct(self) -> bool:
        """Whether libmxfp4_repack.so moves bytes to the GPU without this module."""
        return self._gpu is not None

    def close(self) -> None:
        """Frees the pinned ring, and ends the library's threads; the next load() makes them anew."""
        with self._lock:
            if self._gpu is not None:
                self._gpu.close()

    def load(self, layer: Layer, names: Optional[Sequence[str]] = None) -> Dict[str, torch.Tensor]:
        """{name: tensor} of the layer's tensors, or of `names`, as tensor_view makes them.

        Each has storage of its own, info.slack_bytes longer than the tensor and zero there. All
        bytes have arrived when this returns. Raises what reading raises, torch's out-of-memory
        error, and DependencyError where torch lacks a type.
        """
        infos = [layer.info(name) for name in (layer.tensors if names is None else names)]
        return _views(layer, infos, self._load(layer, infos, None))

    def load_into(self, layer: Layer, flats: Mapping[str, torch.Tensor]) -> None:
        """As load(), to memory that is there: flats holds uint8 tensors by name, on this device, of info.nbytes
        or info.slack_bytes more. Nothing is allocated on a GPU. After an error their content is undefined."""
        self._load(layer, [layer.info(name) for name in flats], flats)

    def make_into(self, layer: Layer, flats: Flats, tensors: Mapping[str, torch.Tensor]) -> None:
        """As load_into(), from the checkpoint's tensors, by name, in this GPU's memory in place of its files. Raises
        NotFoundError for the first that is missing; nothing is changed then."""
        with self._lock:
            if not self._opened():
                raise DependencyError("libcuda.so.1", "", "the library has no GPU to make tensors on")
            torch.cuda.current_stream(self.device).synchronize()
            layer.make_on_gpu(self._gpu, {name: flat.data_ptr() for name, flat in flats.items()},
                              {name: (tensor.data_ptr(), tensor.nbytes) for name, tensor in tensors.items()})

    def _opened(self) -> bool:
        """Whether the library moves bytes to the GPU; after close() it begins anew."""
        if self._gpu is not None and self._gpu.handle is None:
            self._open_gpu()
        return self._gpu is not None

    def _load(self, layer: Layer, infos: Sequence[TensorInfo], given: "Flats | None") -> "Flats":
        with self._lock:
            gpu = self._gpu if self.device.type == "cuda" and self._opened() else None
            flats = _allocate(infos, self.device) if given is None else given
            for info in infos:
                if info.slack_bytes:
                    flats[info.name][info.nbytes:].zero_()
            if gpu is not None:
                # Kernels of the caller's stream may still read what lay there.
                torch.cuda.current_stream(self.device).synchronize()
                layer.read_to_gpu(gpu, {info.name: flats[info.name].data_ptr() for info in infos})
                self.made_by = gpu.made_by() or self.made_by
                return flats
            for info in infos:
                flat = flats[info.name][:info.nbytes]
                read = flat if flat.device.type == "cpu" else torch.empty(info.nbytes, dtype=torch.uint8)
                layer.read_into(info.name, 0, read.numpy(), self.threads)
                if read is not flat:
                    flat.copy_(read)
            return flats


_makes = ""
_loaders: Dict[torch.device, Loader] = {}
_loaders_lock = threading.Lock()


def _after_fork() -> None:
    """A child process must not use its parent's pinned memory: it makes loaders of its own."""
    global _loaders, _loaders_lock
    _loaders, _loaders_lock = {}, threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def _with_index(device: Any) -> torch.device:
    """`device`; a GPU without a number is the calling thread's current one."""
    found = torch.device(device)
    return torch.device("cuda", torch.cuda.current_device()) if found.type == "cuda" and found.index is None else found


def _kept(key: torch.device) -> Loader:
    """The device's loader, made unless there is one."""
    with _loaders_lock:
        if key not in _loaders:
            _loaders[key] = Loader(key)
        return _loaders[key]


def prepare(device: Any) -> None:
    """Makes the device's kept loader in a thread: the first load() finds it, or waits until it is there.

    For a program that has other work before its first load: a ring and threads take some 20 ms.
    A loader that cannot be made is load()'s to report.
    """
    key = _with_index(device)  # the other thread has a current GPU of its own

    def make() -> None:
        with contextlib.suppress(Exception):
            _kept(key)

    threading.Thread(target=make, name="mxfp4-repack-prepare").start()


def load(layer: Layer, device: Any, names: Optional[Sequence[str]] = None,
         ) -> Dict[str, torch.Tensor]:
    """Loader.load() with the device's kept loader, which the first call makes."""
    return _kept(_with_index(device)).load(layer, names)


def load_into(layer: Layer, device: Any, flats: Flats) -> None:
    """Loader.load_into() with the device's kept loader."""
    _kept(_with_index(device)).load_into(layer, flats)


def make_into(layer: Layer, device: Any, flats: Flats, tensors: Mapping[str, torch.Tensor]) -> None:
    """Loader.make_into() with the device's kept loader."""
    _kept(_with_index(device)).make_into(layer, flats, tensors)


def let_make(makes: str) -> None:
    """Who makes what is not in a blob, of loaders that are made from now on: see Loader."""
    global _makes
    _makes = makes


def made_by() -> str:
    """Who made what the kept loaders had to make, for a log; empty where nothing was to be made."""
    with _loaders_lock:
        return ", ".join(sorted({loader.made_by for loader in _loaders.values()} - {""}))


def release() -> None:
    """Closes the kept loaders: torch gets their pinned memory back."""
    with _loaders_lock:
        for loader in _loaders.values():
            loader.close()
        _loaders.clear()
