"""Moves layers of a blob to a device with torch: mxfp4_repack's Layer.to_device().

To a GPU: a few threads read (from an uncompressed file) or decode (from a compressed one) pieces of
the tensors straight into pinned slots of a ring that is made once and used for every layer. The
calling thread enqueues the copies on a stream of the loader's own, and gives slots back when an event
says that they are free: it alone calls torch, since every call of torch hands the interpreter's lock
around. The tensors are allocated once, at their final size; no other GPU memory is used, and no copy
to the GPU starts from pageable memory.

To the CPU the same threads write straight into the tensors.
"""
from __future__ import annotations

import os
import queue
import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Callable, Deque, Dict, List, Optional, Sequence, Tuple

import torch

from mxfp4_repack import Layer, tensor_view

__all__ = ["Loader", "load", "release"]

DEFAULT_THREADS = 10
DEFAULT_SLOT_BYTES = 4 << 20  # two frames of a compressed file
SLOTS_PER_THREAD = 2  # one is filled while the other is copied
POLL_SECONDS = 0.0001  # between looks for slots whose copies have arrived

_Piece = Tuple[str, int, int]  # tensor, and [begin, end) of its bytes


class _Slot:
    """A part of the pinned ring, and the end of the last copy out of it."""

    def __init__(self, pinned: torch.Tensor) -> None:
        self.tensor = pinned
        self.array = pinned.numpy()
        self.free = torch.cuda.Event()


class Loader:
    """Loads layers to one device. The ring and the threads live until close().

    threads: readers, by default one a core that this process may use, 10 at most. slot_bytes: bytes
    of each of the threads * 2 slots of the ring. One load() runs at a time; others wait.
    """

    def __init__(self, device: Any, *, threads: Optional[int] = None,
                 slot_bytes: int = DEFAULT_SLOT_BYTES) -> None:
        self.device = torch.device(device)
        self.threads = threads or min(DEFAULT_THREADS, len(os.sched_getaffinity(0)))
        self.slot_bytes = slot_bytes
        self._lock = threading.Lock()
        self._stream: Optional[torch.cuda.Stream] = None
        self._slots: List[_Slot] = []
        if self.device.type == "cuda":
            with torch.cuda.device(self.device):
                self.device = torch.device("cuda", torch.cuda.current_device())
                self._stream = torch.cuda.Stream()
                ring = torch.empty(self.threads * SLOTS_PER_THREAD * slot_bytes, dtype=torch.uint8,
                                   pin_memory=True)
                self._slots = [_Slot(part) for part in ring.split(slot_bytes)]
        self._pool = ThreadPoolExecutor(self.threads, "mxfp4-loader")

    def close(self) -> None:
        """Ends the threads and frees the ring."""
        with self._lock:
            self._pool.shutdown()
            self._slots.clear()

    def load(self, layer: Layer, names: Optional[Sequence[str]] = None) -> Dict[str, torch.Tensor]:
        """{name: tensor} of the layer's tensors, or of `names`, as tensor_view makes them.

        Each has storage of its own, info.slack_bytes longer than the tensor and zero there. All
        bytes have arrived when this returns. Raises what reading raises, torch's out-of-memory
        error, and DependencyError where torch lacks a type.
        """
        infos = [layer.info(name) for name in (layer.tensors if names is None else names)]
        with self._lock:
            on_cpu = self.device.type != "cuda"
            flats = {info.name: torch.empty(info.nbytes + info.slack_bytes, dtype=torch.uint8,
                                            device="cpu" if on_cpu else self.device)
                     for info in infos}
            tensors = {info.name: tensor_view(info, flats[info.name], layer.path) for info in infos}
            work: queue.SimpleQueue[_Piece] = queue.SimpleQueue()
            for info in infos:
                flats[info.name][info.nbytes:].zero_()
                for begin, end in layer.pieces(info.name, self.slot_bytes):
                    work.put((info.name, begin, end))
            if on_cpu:
                self._run(work, lambda name, begin, end: layer.read_into(
                    name, begin, flats[name].numpy()[begin:end]))
            else:
                self._run_on_gpu(layer, flats, work)
        if self.device.type not in ("cpu", "cuda"):
            return {info.name: tensor_view(info, flats[info.name].to(self.device), layer.path)
                    for info in infos}
        return tensors

    def _run(self, work: Any, step: Callable[[str, int, int], None],
             meanwhile: Callable[[], None] = lambda: None,
             at_end: Callable[[], None] = lambda: None) -> None:
        """Empties `work` in the threads, each calling at_end() when it stops, while this thread does
        `meanwhile`; raises the first error after all have stopped."""

        def run() -> None:
            try:
                while True:
                    step(*work.get_nowait())
            except queue.Empty:
                pass
            except BaseException:
                _drain(work)  # the others stop after the piece they are at
                raise
            finally:
                at_end()

        futures: List[Future[None]] = [self._pool.submit(run) for _ in range(self.threads)]
        try:
            meanwhile()
        finally:
            errors = [future.exception() for future in futures]
        for error in errors:
            if error is not None:
                raise error

    def _run_on_gpu(self, layer: Layer, flats: Dict[str, torch.Tensor], work: Any) -> None:
        stream = self._stream
        assert stream is not None
        # The allocator may hand out memory that kernels of the caller's stream still read.
        stream.wait_stream(torch.cuda.current_stream(self.device))
        free: queue.SimpleQueue[_Slot] = queue.SimpleQueue()
        full: queue.SimpleQueue[Optional[Tuple[_Slot, _Piece]]] = queue.SimpleQueue()
        for slot in self._slots:
            free.put(slot)

        def read(name: str, begin: int, end: int) -> None:
            slot = free.get()
            try:
                layer.read_into(name, begin, slot.array[:end - begin])
            except BaseException:
                free.put(slot)
                raise
            full.put((slot, (name, begin, end)))

        def copy() -> None:
            copying: Deque[_Slot] = deque()
            running = self.threads
            failed: Optional[BaseException] = None
            while running:
                while copying and copying[0].free.query():
                    free.put(copying.popleft())
                try:
                    item = full.get(timeout=POLL_SECONDS if copying else None)
                except queue.Empty:
                    continue
                if item is None:
                    running -= 1
                    continue
                slot, (name, begin, end) = item
                try:
                    if failed is None:
                        flats[name][begin:end].copy_(slot.tensor[:end - begin], non_blocking=True)
                        slot.free.record(stream)
                        copying.append(slot)
                        continue
                except BaseException as error:  # the threads wait for slots: they come first
                    failed = error
                    _drain(work)
                free.put(slot)
            if failed is not None:
                raise failed

        try:
            with torch.cuda.stream(stream):
                self._run(work, read, copy, lambda: full.put(None))
        finally:
            stream.synchronize()  # also before an error lets go of the tensors


def _drain(work: Any) -> None:
    try:
        while True:
            work.get_nowait()
    except queue.Empty:
        pass


_loaders: Dict[torch.device, Loader] = {}
_loaders_lock = threading.Lock()


def _after_fork() -> None:
    """The child has none of the threads."""
    global _loaders, _loaders_lock
    _loaders, _loaders_lock = {}, threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def load(layer: Layer, device: Any, names: Optional[Sequence[str]] = None,
         ) -> Dict[str, torch.Tensor]:
    """Loader.load() with a loader that is made at the first call for a device and kept."""
    key = torch.device(device)
    if key.type == "cuda" and key.index is None:
        key = torch.device("cuda", torch.cuda.current_device())
    with _loaders_lock:
        if key not in _loaders:
            _loaders[key] = Loader(key)
        loader = _loaders[key]
    return loader.load(layer, names)


def release() -> None:
    """Closes the kept loaders: their threads end, their pinned memory is freed."""
    with _loaders_lock:
        for loader in _loaders.values():
            loader.close()
        _loaders.clear()
