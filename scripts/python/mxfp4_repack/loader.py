"""Moves layers of a blob to a device with torch: Layer.to_device().

To a GPU: a few threads read (from an uncompressed file) or decode (from a compressed one) pieces of
the tensors straight into pinned slots of a ring that is made once and used for every layer. The
calling thread enqueues the copies on a stream of the loader's own, and gives slots back once their
copies have arrived: it alone calls torch, since every call of torch hands the interpreter's lock
around, and it waits once for several copies. Pieces are large for the same reason, but small enough
to be copied out of the caches; the first are smaller, so that copying begins early, and the last, so
that the threads end together. The tensors are allocated once, at their final size; no other GPU
memory is used, and no copy to the GPU starts from pageable memory.

To the CPU the same threads write straight into the tensors.
"""
from __future__ import annotations

import os
import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any, Deque, Dict, Iterator, List, Optional, Protocol, Sequence, Tuple

import torch

from mxfp4_repack.tensors import TensorInfo, tensor_view

__all__ = ["Loader", "load", "release"]

DEFAULT_THREADS = 12
DEFAULT_SLOT_BYTES = 4 << 20  # larger ones leave the caches before they are copied
SPARE_SLOTS = 12  # beside one a thread: those that are copied, and those that wait for a thread
BATCH_SLOTS = 4  # copied before one event at most
BATCHES = 2  # being copied: one goes on while the calling thread sees to what the other leaves
STEPS_TO_SLOT = 2  # the smallest pieces are half a slot: a frame of a compressed file


class Readable(Protocol):
    """What is loaded: a layer of a blob, in an open file. Its reads are thread-safe."""

    @property
    def path(self) -> str: ...

    @property
    def tensors(self) -> Tuple[str, ...]: ...

    def info(self, name: str) -> TensorInfo: ...

    def pieces(self, name: str, limit: int, begin: int = 0) -> Iterator[Tuple[int, int]]: ...

    def read_into(self, name: str, begin: int, out: Any) -> None: ...


_Piece = Tuple[str, int, int]  # tensor, and [begin, end) of its bytes


class _Pieces:
    """The pieces of some tensors, each given to the one thread that takes it."""

    def __init__(self, layer: Readable, infos: Sequence[TensorInfo], slot_bytes: int,
                 threads: int) -> None:
        self._lock = threading.Lock()
        self._rest = _cut(layer, infos, slot_bytes, threads)

    def take(self) -> Optional[_Piece]:
        """None when there are no more."""
        with self._lock:
            return next(self._rest, None)

    def stop(self) -> None:
        """There are no more."""
        with self._lock:
            self._rest = iter(())


def _cut(layer: Readable, infos: Sequence[TensorInfo], slot_bytes: int,
         threads: int) -> Iterator[_Piece]:
    """Pieces of a slot, but the threads' first, from small to large, so that they come to be copied
    one after another, and the last, of half a thread's share in the rest."""
    step = max(1, slot_bytes // STEPS_TO_SLOT)
    count, rest = 0, sum(info.nbytes for info in infos)
    for info in infos:
        end = 0
        while end < info.nbytes:
            steps = min(1 + count * STEPS_TO_SLOT // threads, rest * 2 // (threads * step))
            limit = min(slot_bytes, max(1, steps) * step)
            begin, end = next(layer.pieces(info.name, limit, end))
            count, rest = count + 1, rest - (end - begin)
            yield info.name, begin, end


class _ToCpu:
    """Where the threads' pieces go: here, straight into the tensors."""

    def __init__(self, layer: Readable, infos: Sequence[TensorInfo]) -> None:
        self.layer = layer
        self.tensors, self.flats = _allocate(layer, infos, "cpu")
        for info in infos:
            self.flats[info.name][info.nbytes:].zero_()
        self.arrays = {name: flat.numpy() for name, flat in self.flats.items()}

    def read(self, name: str, begin: int, end: int) -> None:
        """A thread's part: one piece."""
        self.layer.read_into(name, begin, self.arrays[name][begin:end])

    def ended(self) -> None:
        """Each thread calls it when it stops."""

    def work(self) -> None:
        """The calling thread's part."""

    def give_up(self) -> None:
        """Lets threads end that wait for the calling thread, which failed, in read()."""


class _Slot:
    """A part of the pinned ring, and an event for the end of copies out of it and others."""

    def __init__(self, size: int) -> None:
        self.tensor = torch.empty(size, dtype=torch.uint8, pin_memory=True)
        self.array = self.tensor.numpy()
        self.copied = torch.cuda.Event()


class _ToGpu:
    """As _ToCpu, by way of the ring.

    A slot is in `free`, with a thread, in `full`, or in `copying`. Nothing waits with a timeout,
    putting never waits, and what waits is always woken:
    - a thread waits only for a free slot, so only while all slots are elsewhere. Those with threads
      come to `full`; work() takes all from there, and before it would start another batch than
      BATCHES waits for the oldest and frees its slots. If it fails, give_up() wakes every thread
      that waits, or is about to, without a slot: none is written while a copy may still read it.
    - work() waits for `full` only while less than BATCHES batches are being copied, which are fewer
      slots than SPARE_SLOTS. Then each thread that runs has a slot or can take one, and so will put
      that one there or, at its end, whatever ends it, None. (A slot whose read failed is lost till
      the next load; so is its thread.)
    """

    def __init__(self, layer: Readable, infos: Sequence[TensorInfo], device: torch.device,
                 stream: torch.cuda.Stream, slots: Sequence[_Slot], threads: int) -> None:
        self.layer, self.infos, self.device, self.stream = layer, infos, device, stream
        self.threads = threads
        self.free: SimpleQueue[Optional[_Slot]] = SimpleQueue()
        self.full: SimpleQueue[Optional[Tuple[_Slot, _Piece]]] = SimpleQueue()
        for slot in slots:
            self.free.put(slot)

    def read(self, name: str, begin: int, end: int) -> None:
        slot = self.free.get()
        if slot is not None:
            self.layer.read_into(name, begin, slot.array[:end - begin])
            self.full.put((slot, (name, begin, end)))

    def ended(self) -> None:
        self.full.put(None)

    def work(self) -> None:
        # The threads are reading already. Memory comes from the caller's stream, kernels of which
        # may still read what lay there.
        self.tensors, flats = _allocate(self.layer, self.infos, self.device)
        self.stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self.stream):
            for info in self.infos:
                if info.slack_bytes:
                    flats[info.name][info.nbytes:].zero_()
            self._copy(flats)

    def _copy(self, flats: Dict[str, torch.Tensor]) -> None:
        copying: Deque[List[_Slot]] = deque()
        running = self.threads
        while running:
            if len(copying) == BATCHES:
                copied = copying.popleft()
                copied[-1].copied.synchronize()
                for slot in copied:
                    self.free.put(slot)
            batch: List[_Slot] = []
            for item in self._take_full():
                if item is None:
                    running -= 1
                    continue
                slot, (name, begin, end) = item
                flats[name][begin:end].copy_(slot.tensor[:end - begin], non_blocking=True)
                batch.append(slot)
            if batch:
                batch[-1].copied.record(self.stream)
                copying.append(batch)

    def _take_full(self) -> List[Optional[Tuple[_Slot, _Piece]]]:
        """Waits for one, and takes those too that are there already."""
        items = [self.full.get()]
        while len(items) < BATCH_SLOTS and not self.full.empty():
            items.append(self.full.get())
        return items

    def give_up(self) -> None:
        for _ in range(self.threads):
            self.free.put(None)


def _allocate(layer: Readable, infos: Sequence[TensorInfo], device: Any,
              ) -> Tuple[Dict[str, torch.Tensor], Dict[str, torch.Tensor]]:
    """The tensors, and the bytes that each lies in."""
    flats = {info.name: torch.empty(info.nbytes + info.slack_bytes, dtype=torch.uint8,
                                    device=device) for info in infos}
    return {info.name: tensor_view(info, flats[info.name], layer.path) for info in infos}, flats


class Loader:
    """Loads layers to one device. The ring and the threads live until close().

    threads: readers, by default one a core that this process may use, 12 at most. slot_bytes: bytes
    of each of the threads + 12 slots of the ring. One load() runs at a time; others wait.
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
                # One by one: torch rounds pinned memory up to a power of two.
                self._slots = [_Slot(slot_bytes) for _ in range(self.threads + SPARE_SLOTS)]
        self._pool = ThreadPoolExecutor(self.threads, "mxfp4-loader")

    def close(self) -> None:
        """Ends the threads and gives the ring back to torch."""
        with self._lock:
            self._pool.shutdown()
            self._slots.clear()

    def load(self, layer: Readable, names: Optional[Sequence[str]] = None) -> Dict[str, torch.Tensor]:
        """{name: tensor} of the layer's tensors, or of `names`, as tensor_view makes them.

        Each has storage of its own, info.slack_bytes longer than the tensor and zero there. All
        bytes have arrived when this returns. Raises what reading raises, torch's out-of-memory
        error, and DependencyError where torch lacks a type.
        """
        infos = [layer.info(name) for name in (layer.tensors if names is None else names)]
        with self._lock:
            pieces = _Pieces(layer, infos, self.slot_bytes, self.threads)
            if self._stream is not None:
                gpu = _ToGpu(layer, infos, self.device, self._stream, self._slots, self.threads)
                try:
                    self._run(pieces, gpu)
                finally:
                    self._stream.synchronize()  # also before an error lets go of the tensors
                return gpu.tensors
            cpu = _ToCpu(layer, infos)
            self._run(pieces, cpu)
        if self.device.type == "cpu":
            return cpu.tensors
        return {info.name: tensor_view(info, cpu.flats[info.name].to(self.device), layer.path)
                for info in infos}

    def _run(self, pieces: _Pieces, target: "_ToCpu | _ToGpu") -> None:
        """The threads read all pieces while this thread does target.work(); the first error comes
        out after all have stopped."""

        def run() -> None:
            try:
                for piece in iter(pieces.take, None):
                    target.read(*piece)
            except BaseException:
                pieces.stop()  # the others end after the piece they are at
                raise
            finally:
                target.ended()

        futures: List[Future[None]] = []
        try:
            for _ in range(self.threads):
                futures.append(self._pool.submit(run))
            target.work()
        except BaseException:
            pieces.stop()
            target.give_up()
            raise
        finally:
            errors = [future.exception() for future in futures]
        for error in errors:
            if error is not None:
                raise error


_loaders: Dict[torch.device, Loader] = {}
_loaders_lock = threading.Lock()


def _after_fork() -> None:
    """The child has none of the threads."""
    global _loaders, _loaders_lock
    _loaders, _loaders_lock = {}, threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def load(layer: Readable, device: Any, names: Optional[Sequence[str]] = None,
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
    """Closes the kept loaders: their threads end, torch gets their pinned memory back."""
    with _loaders_lock:
        for loader in _loaders.values():
            loader.close()
        _loaders.clear()
