"""Moves layers of a blob to a device with torch: Layer.to_device().

To a GPU: threads of libmxfp4_repack.so read, or decode, the tensors one after another into a pinned
ring that is made once and used for every layer. The calling thread enqueues copies of full runs, of
several megabytes each, on a CUDA stream of the loader's own, and gives each run back when its copy
is done. No thread but the calling one needs the interpreter's lock. Without the library the calling
thread reads, too. The tensors are allocated once, at their final size; no other GPU memory is used,
and no copy to the GPU starts from pageable memory.

To the CPU: the threads write straight into the tensors.
"""
from __future__ import annotations

import os
import threading
from collections import deque
from typing import Any, Deque, Dict, Optional, Protocol, Sequence, Tuple

import torch

from mxfp4_repack.layer_file import Bytes
from mxfp4_repack.stream import Stream
from mxfp4_repack.tensors import TensorInfo, tensor_view

__all__ = ["Loader", "load", "release"]

DEFAULT_THREADS = 14
SPARE_CPUS = 2  # for the calling thread, which must not wait for a reader's turn, and the driver
DEFAULT_RING_BYTES = 64 << 20  # a power of two: torch rounds pinned memory up to one
RUNS_IN_RING = 8
RUNS_COPYING = 2  # while the next is read: a stream allows no more


class Readable(Protocol):
    """A layer of a blob, in an open file."""

    @property
    def path(self) -> str: ...

    @property
    def tensors(self) -> Tuple[str, ...]: ...

    def info(self, name: str) -> TensorInfo: ...

    def stream(self, names: Sequence[str], ring: Bytes, run_bytes: int,
               threads: int) -> Stream: ...

    def read_into(self, name: str, begin: int, out: Bytes, threads: int = 1) -> None: ...


def _allocate(layer: Readable, infos: Sequence[TensorInfo], device: Any,
              ) -> Tuple[Dict[str, torch.Tensor], Dict[str, torch.Tensor]]:
    """The tensors, not filled, and the flat bytes that each lies in, info.slack_bytes longer."""
    flats = {info.name: torch.empty(info.nbytes + info.slack_bytes, dtype=torch.uint8,
                                    device=device) for info in infos}
    return {info.name: tensor_view(info, flats[info.name], layer.path) for info in infos}, flats


class Loader:
    """Loads layers to one device. The ring lives until close(); a load after it makes another.

    threads: readers, by default two fewer than the CPUs that this process may use, 14 at most.
    ring_bytes: pinned memory for a GPU. One load() runs at a time; others wait.
    """

    def __init__(self, device: Any, *, threads: Optional[int] = None,
                 ring_bytes: int = DEFAULT_RING_BYTES) -> None:
        self.device = torch.device(device)
        cpus = len(os.sched_getaffinity(0))
        self.threads = threads or max(1, min(DEFAULT_THREADS, cpus - SPARE_CPUS))
        self.ring_bytes = ring_bytes
        self._lock = threading.Lock()
        self._stream: Optional[torch.cuda.Stream] = None
        self._ring: Optional[torch.Tensor] = None
        if self.device.type == "cuda":
            with torch.cuda.device(self.device):
                self.device = torch.device("cuda", torch.cuda.current_device())
                self._stream = torch.cuda.Stream()
                self._ring = self._pinned()

    def _pinned(self) -> torch.Tensor:
        return torch.empty(self.ring_bytes, dtype=torch.uint8, pin_memory=True)

    def close(self) -> None:
        """Gives the ring back to torch."""
        with self._lock:
            self._ring = None

    def load(self, layer: Readable, names: Optional[Sequence[str]] = None) -> Dict[str, torch.Tensor]:
        """{name: tensor} of the layer's tensors, or of `names`, as tensor_view makes them.

        Each has storage of its own, info.slack_bytes longer than the tensor and zero there. All
        bytes have arrived when this returns. Raises what reading raises, torch's out-of-memory
        error, and DependencyError where torch lacks a type.
        """
        infos = [layer.info(name) for name in (layer.tensors if names is None else names)]
        with self._lock:
            if self._stream is not None:
                if self._ring is None:
                    self._ring = self._pinned()
                return self._to_gpu(layer, infos, self._ring, self._stream)
            tensors, flats = _allocate(layer, infos, "cpu")
            for info in infos:
                flat = flats[info.name]
                flat[info.nbytes:].zero_()
                layer.read_into(info.name, 0, flat.numpy()[:info.nbytes], self.threads)
        if self.device.type == "cpu":
            return tensors
        return {info.name: tensor_view(info, flats[info.name].to(self.device), layer.path)
                for info in infos}

    def _to_gpu(self, layer: Readable, infos: Sequence[TensorInfo], ring: torch.Tensor,
                gpu: torch.cuda.Stream) -> Dict[str, torch.Tensor]:
        # The threads read already while memory is allocated.
        full = layer.stream([info.name for info in infos], ring.numpy(),
                            self.ring_bytes // RUNS_IN_RING, self.threads)
        try:
            tensors, flats = _allocate(layer, infos, self.device)
            # Kernels of the caller's stream may still use the memory that torch just gave us.
            gpu.wait_stream(torch.cuda.current_stream(self.device))
            with torch.cuda.stream(gpu):
                for info in infos:
                    if info.slack_bytes:
                        flats[info.name][info.nbytes:].zero_()
                self._copy(full, [flats[info.name] for info in infos], ring, gpu)
        finally:
            gpu.synchronize()  # after an error too: copies must not outlive the tensors
            full.close()
        return tensors

    @staticmethod
    def _copy(full: Stream, flats: Sequence[torch.Tensor], ring: torch.Tensor,
              gpu: torch.cuda.Stream) -> None:
        copying: Deque[torch.cuda.Event] = deque()
        spare = [torch.cuda.Event() for _ in range(RUNS_COPYING + 1)]
        for run in iter(full.next, None):
            source = ring[run.place:run.place + run.end - run.begin]
            flats[run.tensor][run.begin:run.end].copy_(source, non_blocking=True)
            event = spare.pop()
            event.record(gpu)
            copying.append(event)
            if len(copying) > RUNS_COPYING:
                oldest = copying.popleft()
                oldest.synchronize()
                full.give_back()
                spare.append(oldest)


_loaders: Dict[torch.device, Loader] = {}
_loaders_lock = threading.Lock()


def _after_fork() -> None:
    """A child process must not use its parent's pinned memory: it makes loaders of its own."""
    global _loaders, _loaders_lock
    _loaders, _loaders_lock = {}, threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def load(layer: Readable, device: Any, names: Optional[Sequence[str]] = None,
         ) -> Dict[str, torch.Tensor]:
    """Loader.load() with the device's kept loader, which the first call makes."""
    key = torch.device(device)
    if key.type == "cuda" and key.index is None:
        key = torch.device("cuda", torch.cuda.current_device())
    with _loaders_lock:
        if key not in _loaders:
            _loaders[key] = Loader(key)
        loader = _loaders[key]
    return loader.load(layer, names)


def release() -> None:
    """Closes the kept loaders: torch gets their pinned memory back."""
    with _loaders_lock:
        for loader in _loaders.values():
            loader.close()
        _loaders.clear()
