"""libmxfp4_repack.so by ctypes: decodes compressed layers while other threads run Python.

The library is the one that MXFP4_REPACK_LIBRARY names, else the one inside this package, else the
system's. Where there is none, or it cannot open a blob, layer_file.py reads: it knows the same
files, and says what is wrong with one. MXFP4_REPACK_LIBRARY= (empty) turns the library off.
"""
from __future__ import annotations

import bisect
import ctypes
import functools
import itertools
import os
from pathlib import Path
from typing import Any, Callable, Iterator, List, Optional, Sequence, Tuple

from mxfp4_repack.errors import BlobError, DependencyError, ReadError, SizeError
from mxfp4_repack.layer_file import Bytes, LayerFile

_NAME = "libmxfp4_repack.so.0"  # the number of the interface's version
_OK = 0
_SIZE, _INT32, _POINTER = ctypes.c_int64, ctypes.c_int32, ctypes.c_void_p


class _ReadOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("threads", _INT32), ("verify", _INT32),
                ("cancel", _POINTER)]


class _Layer(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("index", _SIZE), ("prefix", ctypes.c_char_p),
                ("engine_prefix", ctypes.c_char_p), ("num_tensors", _SIZE)]


@functools.lru_cache(maxsize=1)
def library() -> Any:
    """The loaded library, or None. Raises DependencyError when the one that is named is no good."""
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
            ("last_error", text, []), ("open", ctypes.c_int, [text, ctypes.POINTER(_POINTER)]),
            ("close", None, [_POINTER]), ("header", text, [_POINTER, _SIZE, sizes]),
            ("num_layers", _SIZE, [_POINTER]),
            ("get_layer", ctypes.c_int, [_POINTER, _SIZE, ctypes.POINTER(_Layer)]),
            ("read_part", ctypes.c_int, read),
            ("cut", ctypes.c_int, [_POINTER, *[_SIZE] * 4, ctypes.POINTER(_SIZE)])):
        function = getattr(found, "mxfp4_repack_" + name)
        function.restype, function.argtypes = answer, arguments
    return found


class NativeBlob:
    """One rank's blob, open in the library until nobody holds this."""

    def __init__(self, functions: Any, handle: Any) -> None:
        self.functions, self.handle = functions, handle
        self.prefixes: List[str] = []
        for index in range(functions.mxfp4_repack_num_layers(handle)):
            layer = _Layer(struct_size=ctypes.sizeof(_Layer))
            functions.mxfp4_repack_get_layer(handle, index, ctypes.byref(layer))
            self.prefixes.append(layer.prefix.decode())

    def __del__(self) -> None:
        self.functions.mxfp4_repack_close(self.handle)


def open_native(root: str) -> Optional[NativeBlob]:
    """None without the library, and when it refuses the blob."""
    functions = library()
    if functions is None:
        return None
    handle = _POINTER()
    if functions.mxfp4_repack_open(os.fsencode(root), ctypes.byref(handle)) != _OK:
        return None
    return NativeBlob(functions, handle)


class NativeFile:
    """As LayerFile, of a compressed layer. `sizes`: bytes of each tensor."""

    def __init__(self, blob: NativeBlob, prefix: str, path: str, sizes: Sequence[int],
                 pure: Callable[[], LayerFile]) -> None:
        self.path, self.decoded_bytes = path, 0
        self._blob: Optional[NativeBlob] = blob
        self._layer, self._pure = blob.prefixes.index(prefix), pure
        self._size = os.stat(path).st_size
        self._starts = list(itertools.accumulate(sizes, initial=0))
        self.data_size = self._starts[-1]
        options = _ReadOptions(ctypes.sizeof(_ReadOptions), threads=1, verify=1)
        self._options = ctypes.byref(options)
        length = ctypes.c_size_t()
        text = blob.functions.mxfp4_repack_header(blob.handle, self._layer, ctypes.byref(length))
        self.header: bytes = text[:length.value]  # JSON text

    def close(self) -> None:
        self._blob = None

    def checksum(self) -> str:
        """XXH3-128 of the whole file."""
        file = self._pure()
        try:
            return file.checksum()
        finally:
            file.close()

    def read_into(self, offset: int, out: Bytes) -> None:
        """Fills `out` with data bytes of one tensor from `offset` on. Thread-safe."""
        if not 0 <= offset <= self.data_size - out.size:
            raise SizeError(self.path, "", f"data bytes {offset} to {offset + out.size} of "
                                           f"{self.data_size} were asked for")
        blob, (tensor, begin) = self._open(), self._place(offset)
        status = blob.functions.mxfp4_repack_read_part(
            blob.handle, self._layer, tensor, begin, out.ctypes.data, out.size, self._options)
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

    def _read_again(self, offset: int, out: Bytes, what: bytes) -> None:
        """Where the library failed, the pure reader tells what it is."""
        size = os.stat(self.path).st_size if os.path.exists(self.path) else 0
        if size != self._size:
            raise SizeError(self.path, "", f"{size} bytes, {self._size} when it was opened")
        try:
            file = self._pure()
        except DependencyError:
            raise BlobError(self.path, "", what.decode(errors="replace")) from None
        try:
            file.read_into(offset, out)
        finally:
            file.close()
