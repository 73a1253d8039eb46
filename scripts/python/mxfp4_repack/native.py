"""Calls libmxfp4_repack.so with ctypes; the library reads and decodes layers in threads of its own.

The library is the one that MXFP4_REPACK_LIBRARY names, else the one inside this package, else the
system's. Where there is none, or it cannot open a blob, layer_file.py reads the same files, and
says what is wrong with one. MXFP4_REPACK_LIBRARY= (empty) turns the library off.
"""
from __future__ import annotations

import bisect
import contextlib
import ctypes
import functools
import itertools
import os
from pathlib import Path
from typing import Any, Callable, Iterator, List, NoReturn, Optional, Sequence, Tuple

from mxfp4_repack.errors import BlobError, ChecksumError, DependencyError, ReadError, SizeError
from mxfp4_repack.layer_file import Bytes, LayerFile
from mxfp4_repack.stream import Run

_NAME = "libmxfp4_repack.so.0"  # the number of the interface's version
_OK = 0
_SIZE, _INT32, _POINTER = ctypes.c_int64, ctypes.c_int32, ctypes.c_void_p


class _OpenOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("direct", _INT32), ("reserved", _INT32)]


class _ReadOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("threads", _INT32), ("verify", _INT32),
                ("cancel", _POINTER)]


class _GpuOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("threads", _INT32), ("reserved", _INT32),
                ("ring_bytes", _SIZE)]


class _Request(ctypes.Structure):
    _fields_ = [("layer", _SIZE), ("tensor", _SIZE), ("first_expert", _SIZE),
                ("num_experts", _SIZE), ("memory", _POINTER), ("bytes", _SIZE)]


class _Layer(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("index", _SIZE), ("prefix", ctypes.c_char_p),
                ("engine_prefix", ctypes.c_char_p), ("num_tensors", _SIZE), ("num_experts", _SIZE),
                ("bytes", _SIZE), ("direct", _INT32), ("reserved", _INT32)]


class _Run(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("tensor", _SIZE), ("begin", _SIZE),
                ("bytes", _SIZE), ("memory", _POINTER)]


@functools.lru_cache(maxsize=1)
def library() -> Any:
    """The loaded library, or None. DependencyError: MXFP4_REPACK_LIBRARY names no usable one."""
    named = os.environ.get("MXFP4_REPACK_LIBRARY")
    if named == "":
        return None
    inside = str(Path(__file__).with_name("lib") / _NAME)
    for path in (named,) if named else (inside, _NAME):
        try:
            return _declared(ctypes.CDLL(path))
        except (OSError, AttributeError) as error:  # a function of a newer release is missing
            if named:
                raise DependencyError(named, "", f"is not {_NAME}: {error}") from None
    return None


def _declared(found: Any) -> Any:
    text, read = ctypes.c_char_p, [_POINTER, _SIZE, _SIZE, _SIZE, _POINTER, _SIZE, _POINTER]
    sizes = ctypes.POINTER(ctypes.c_size_t)
    for name, answer, arguments in (
            ("last_error", text, []),
            ("open_with", ctypes.c_int, [text, _POINTER, ctypes.POINTER(_POINTER)]),
            ("close", None, [_POINTER]), ("header", text, [_POINTER, _SIZE, sizes]),
            ("num_layers", _SIZE, [_POINTER]),
            ("get_layer", ctypes.c_int, [_POINTER, _SIZE, ctypes.POINTER(_Layer)]),
            ("read_part", ctypes.c_int, read),
            ("gpu_open", ctypes.c_int, [_INT32, _POINTER, ctypes.POINTER(_POINTER)]),
            ("gpu_read", ctypes.c_int, [_POINTER, _POINTER, _POINTER, ctypes.c_size_t, _POINTER]),
            ("gpu_begin", ctypes.c_int, [_POINTER, _POINTER, _POINTER, ctypes.c_size_t, _POINTER]),
            ("gpu_discard", ctypes.c_int, [_POINTER]), ("gpu_close", None, [_POINTER]),
            ("stream_open", ctypes.c_int, [_POINTER, _SIZE, ctypes.POINTER(_SIZE), ctypes.c_size_t,
                                           _POINTER, _SIZE, _SIZE, _POINTER,
                                           ctypes.POINTER(_POINTER)]),
            ("stream_next", ctypes.c_int, [_POINTER, ctypes.POINTER(_Run)]),
            ("stream_give_back", ctypes.c_int, [_POINTER]), ("stream_close", None, [_POINTER]),
            ("cut", ctypes.c_int, [_POINTER, *[_SIZE] * 4, ctypes.POINTER(_SIZE)])):
        function = getattr(found, "mxfp4_repack_" + name)
        function.restype, function.argtypes = answer, arguments
    return found


class NativeBlob:
    """One rank's blob, open in the library as long as this object lives."""

    def __init__(self, functions: Any, handle: Any) -> None:
        self.functions, self.handle = functions, handle
        self.prefixes: List[str] = [
            self._layer(index).prefix.decode()
            for index in range(functions.mxfp4_repack_num_layers(handle))]

    def _layer(self, index: int) -> _Layer:
        layer = _Layer(struct_size=ctypes.sizeof(_Layer))
        self.functions.mxfp4_repack_get_layer(self.handle, index, ctypes.byref(layer))
        return layer

    def is_direct(self, index: int) -> bool:
        """Whether a layer's tensors are read past the page cache."""
        return bool(self._layer(index).direct)

    def __del__(self) -> None:
        self.functions.mxfp4_repack_close(self.handle)


def open_native(root: str, direct: bool = False) -> Optional[NativeBlob]:
    """The blob in `root`; None without the library, or if it refuses the blob. direct: read past the
    page cache where the file system can."""
    functions = library()
    if functions is None:
        return None
    options = _OpenOptions(ctypes.sizeof(_OpenOptions), direct=direct)
    handle = _POINTER()
    if functions.mxfp4_repack_open_with(os.fsencode(root), ctypes.byref(options),
                                        ctypes.byref(handle)) != _OK:
        return None
    return NativeBlob(functions, handle)


class NativeGpu:
    """A GPU that the library reads to, with its threads and its pinned ring, until close()."""

    def __init__(self, functions: Any, handle: Any) -> None:
        self.functions, self.handle = functions, handle
        self._process, self._getpid = os.getpid(), os.getpid

    def close(self) -> None:
        handle, self.handle = self.handle, None
        # A forked child has neither the threads nor the right to the driver.
        if handle and self._getpid() == self._process:
            self.functions.mxfp4_repack_gpu_close(handle)

    def __del__(self) -> None:
        self.close()


def open_gpu(device: int, threads: int, ring_bytes: int) -> Optional[NativeGpu]:
    """The CUDA GPU of this number. None without the library or a CUDA driver, and when it fails."""
    functions = library()
    if functions is None:
        return None
    options = _GpuOptions(ctypes.sizeof(_GpuOptions), threads=threads, ring_bytes=ring_bytes)
    handle = _POINTER()
    if functions.mxfp4_repack_gpu_open(device, ctypes.byref(options), ctypes.byref(handle)) != _OK:
        return None
    return NativeGpu(functions, handle)


class NativeStream:
    """Threads fill the ring while the caller copies out of it; see stream.Stream."""

    def __init__(self, file: "NativeFile", blob: NativeBlob, layer: int, tensors: Sequence[int],
                 ring: Bytes, run_bytes: int, threads: int,
                 explain: Callable[[], None]) -> None:
        self._file, self._blob, self._ring, self._explain = file, blob, ring, explain
        self._order = {tensor: at for at, tensor in enumerate(tensors)}
        options = _ReadOptions(ctypes.sizeof(_ReadOptions), threads=threads, verify=1)
        numbers = (_SIZE * len(tensors))(*tensors)
        self._handle = _POINTER()
        self._run = _Run(struct_size=ctypes.sizeof(_Run))
        self._check(blob.functions.mxfp4_repack_stream_open(
            blob.handle, layer, numbers, len(tensors), ring.ctypes.data, ring.size, run_bytes,
            ctypes.byref(options), ctypes.byref(self._handle)))

    def next(self) -> Optional[Run]:
        run = self._run
        self._check(self._blob.functions.mxfp4_repack_stream_next(self._handle, ctypes.byref(run)))
        if run.bytes == 0:
            return None
        self._file.decoded_bytes += run.bytes
        return Run(self._order[run.tensor], run.begin, run.begin + run.bytes,
                   run.memory - self._ring.ctypes.data)

    def give_back(self) -> None:
        self._check(self._blob.functions.mxfp4_repack_stream_give_back(self._handle))

    def close(self) -> None:
        self._blob.functions.mxfp4_repack_stream_close(self._handle)
        self._handle = _POINTER()

    def _check(self, status: int) -> None:
        if status != _OK:
            self._file.refuse(self._blob, self._explain)


class NativeGpuRead:
    """Tensors on their way to a GPU. Threads read the first bytes until place() says where to, or
    close() that they are not wanted."""

    def __init__(self, file: "NativeFile", blob: NativeBlob, gpu: NativeGpu, requests: Any,
                 explain: Callable[[], None]) -> None:
        self._file, self._blob, self._gpu, self._explain = file, blob, gpu, explain
        self._requests = requests
        self._options = _ReadOptions(ctypes.sizeof(_ReadOptions), threads=1, verify=1)
        self._begun = True
        self._call(blob.functions.mxfp4_repack_gpu_begin)

    def place(self, addresses: Sequence[int]) -> None:
        """Lets the threads fill the GPU's memory at `addresses`, which no work of the GPU uses until
        finish() or close() returns."""
        for request, address in zip(self._requests, addresses):
            request.memory = address
        self._call(self._blob.functions.mxfp4_repack_gpu_begin)

    def finish(self) -> None:
        """Returns when all bytes have arrived and were compared with the manifest's checksums."""
        self._begun = False
        self._call(self._blob.functions.mxfp4_repack_gpu_read)
        self._file.decoded_bytes += sum(request.bytes for request in self._requests)

    def close(self) -> None:
        if self._begun:
            self._begun = False
            self._blob.functions.mxfp4_repack_gpu_discard(self._gpu.handle)

    def _call(self, function: Any) -> None:
        status = function(self._gpu.handle, self._blob.handle, self._requests, len(self._requests),
                          ctypes.byref(self._options))
        if status != _OK:
            self._begun = False
            self._file.refuse(self._blob, self._explain)


class NativeFile:
    """A LayerFile read by the library. `sizes`: bytes of each tensor; `compressed`: the file is."""

    def __init__(self, blob: NativeBlob, prefix: str, path: str, sizes: Sequence[int],
                 compressed: bool, pure: Callable[[], LayerFile]) -> None:
        self.path, self.decoded_bytes = path, 0
        self._blob: Optional[NativeBlob] = blob
        self._layer, self._pure = blob.prefixes.index(prefix), pure
        self._size = os.stat(path).st_size
        self._starts = list(itertools.accumulate(sizes, initial=0))
        self.data_size = self._starts[-1]
        self._compressed = compressed
        length = ctypes.c_size_t()
        text = blob.functions.mxfp4_repack_header(blob.handle, self._layer, ctypes.byref(length))
        self.header: bytes = text[:length.value]  # JSON text

    def close(self) -> None:
        self._blob = None

    @property
    def direct(self) -> bool:
        return self._blob is not None and self._blob.is_direct(self._layer)

    def checksum(self) -> str:
        """XXH3-128 of the whole file."""
        self._open()
        file = self._pure()
        try:
            return file.checksum()
        finally:
            file.close()

    def stream(self, tensors: Sequence[int], ring: Bytes, run_bytes: int, threads: int,
               explain: Callable[[], None]) -> NativeStream:
        """Streams the tensors of these numbers through `ring`. When reading fails, explain() is
        called to raise the error that says why."""
        return NativeStream(self, self._open(), self._layer, tensors, ring, run_bytes, threads,
                            explain)

    def read_to_gpu(self, gpu: NativeGpu, tensors: Sequence[int], explain: Callable[[], None],
                    ) -> NativeGpuRead:
        """Begins to read the tensors of these numbers. When reading fails, explain() is called to
        raise the error that says why."""
        requests = (_Request * len(tensors))(*(
            _Request(self._layer, tensor, 0, -1, None, self._starts[tensor + 1] - self._starts[tensor])
            for tensor in tensors))
        return NativeGpuRead(self, self._open(), gpu, requests, explain)

    def refuse(self, blob: NativeBlob, explain: Callable[[], None]) -> NoReturn:
        """Raises what explain() raises, else the library's last error."""
        what = blob.functions.mxfp4_repack_last_error().decode(errors="replace")
        try:
            explain()
        except DependencyError:
            pass
        raise BlobError(self.path, "", what)

    def read_into(self, offset: int, out: Bytes, threads: int = 1) -> None:
        """Fills `out` with data bytes of one tensor from `offset` on. Thread-safe."""
        if not 0 <= offset <= self.data_size - out.size:
            raise SizeError(self.path, "", f"data bytes {offset} to {offset + out.size} of "
                                           f"{self.data_size} were asked for")
        blob, (tensor, begin) = self._open(), self._place(offset)
        # A part of a plain file has no checksum.
        whole = begin == 0 and out.size == self._starts[tensor + 1] - self._starts[tensor]
        options = _ReadOptions(ctypes.sizeof(_ReadOptions), threads=threads,
                               verify=int(whole or self._compressed))
        status = blob.functions.mxfp4_repack_read_part(
            blob.handle, self._layer, tensor, begin, out.ctypes.data, out.size,
            ctypes.byref(options))
        if status != _OK:
            self._read_again(offset, out, blob.functions.mxfp4_repack_last_error())
        self.decoded_bytes += out.size

    def cuts(self, begin: int, end: int, limit: int) -> Iterator[Tuple[int, int]]:
        """Cuts data bytes [begin, end) of one tensor into pieces of at most `limit` bytes, at
        frames' ends where they can be. Raises BlobError where the library cannot cut."""
        blob, stop = self._open(), _SIZE()
        while begin < end:
            tensor, first = self._place(begin)
            status = blob.functions.mxfp4_repack_cut(blob.handle, self._layer, tensor, first,
                                                     limit, ctypes.byref(stop))
            if status != _OK:
                what = blob.functions.mxfp4_repack_last_error()
                raise BlobError(self.path, "", what.decode(errors="replace"))
            last = min(end, self._starts[tensor] + stop.value)
            yield begin, last
            begin = last

    def _open(self) -> NativeBlob:
        if self._blob is None:
            raise ReadError(self.path, "", "is closed")
        return self._blob

    def _place(self, offset: int) -> Tuple[int, int]:
        """The last tensor that begins at or before data byte `offset`, and the byte in it."""
        tensor = bisect.bisect_right(self._starts, offset, hi=len(self._starts) - 1) - 1
        return tensor, offset - self._starts[tensor]

    def _read_again(self, offset: int, out: Bytes, what: bytes) -> NoReturn:
        """Raises what the pure reader finds where the library failed, else the library's error: what
        it read is not given out."""
        size = os.stat(self.path).st_size if os.path.exists(self.path) else 0
        if size != self._size:
            raise SizeError(self.path, "", f"{size} bytes, {self._size} when it was opened")
        with contextlib.suppress(DependencyError):
            file = self._pure()
            try:
                file.read_into(offset, out)
            finally:
                file.close()
        raise ChecksumError(self.path, "", what.decode(errors="replace"))
