"""Calls libmxfp4_repack.so with ctypes: the one reader of blobs. It reads and decodes in threads of its own.

The library is the one that MXFP4_REPACK_LIBRARY names, else the one inside this package, else the
system's.
"""
from __future__ import annotations

import ctypes
import functools
import os
from pathlib import Path
from typing import Any, Dict, NamedTuple, Optional, Sequence, Tuple, Type

import numpy as np
from numpy.typing import NDArray

from mxfp4_repack import structures
from mxfp4_repack.errors import (
    ArgumentError, BlobError, ChecksumError, CommandError, DependencyError, FormatError, MismatchError, NotFoundError,
    ReadError, SizeError)
from mxfp4_repack.structures import INT32, POINTER, SIZE

Bytes = NDArray[np.uint8]

_NAME = "libmxfp4_repack.so.0"  # the number of the interface's version
OK, _INPUT = 0, 3
_REFUSALS = {2: "usage", 4: "unsupported"}  # the program's exit codes for the same
# mxfp4_repack_fault -> class
_FAULTS: Dict[int, Type[BlobError]] = {
    1: FormatError, 2: NotFoundError, 3: ReadError, 4: SizeError, 5: ChecksumError, 6: MismatchError}


@functools.lru_cache(maxsize=1)
def library() -> Any:
    """The loaded library. DependencyError: there is none, or MXFP4_REPACK_LIBRARY names no usable one."""
    named = os.environ.get("MXFP4_REPACK_LIBRARY")
    inside = str(Path(__file__).with_name("lib") / _NAME)
    why = ""
    for path in (named,) if named else (inside, _NAME):
        try:
            return _declared(ctypes.CDLL(path))
        except OSError as error:
            why = why or str(error)
        except AttributeError as error:  # a function of a newer release is missing
            why = f"{path} is older than this package: {error}"
    if named:
        raise DependencyError(named, "", f"is not {_NAME} of this release: {why}")
    raise DependencyError(_NAME, "", "the library is neither in this package nor on this system; install a "
                                     f"wheel, or name it in MXFP4_REPACK_LIBRARY ({why})")


def _declared(found: Any) -> Any:
    text, status = ctypes.c_char_p, ctypes.c_int
    size, sizes = ctypes.c_size_t, ctypes.POINTER(ctypes.c_size_t)
    handle, options = ctypes.POINTER(POINTER), POINTER
    requests = [POINTER, POINTER, POINTER, size, options]
    for name, answer, arguments in (
            ("last_error", text, []),
            ("last_fault", ctypes.c_int, []),
            ("open", status, [text, options, handle]),
            ("open_checkpoint", status, [text, text, handle]),
            ("open_checkpoint_for", status, [text, text, handle]),
            ("same_checkpoint", status, [text, text]),
            ("open_safetensors", status, [text, handle]),
            ("close", None, [POINTER]),
            ("manifest", text, [POINTER, sizes]),
            ("get_layer", status, [POINTER, SIZE, ctypes.POINTER(structures.Layer)]),
            ("get_tensor", status, [POINTER, SIZE, SIZE, ctypes.POINTER(structures.Tensor)]),
            ("check_file", status, [POINTER, SIZE, options]),
            ("read", status, requests[1:]),
            ("gpu_open", status, [INT32, options, handle]),
            ("gpu_read", status, requests),
            ("gpu_make", status, [POINTER, POINTER, POINTER, size, POINTER, size]),
            ("gpu_made_by", ctypes.c_char_p, [POINTER]),
            ("gpu_close", None, [POINTER])):
        function = getattr(found, "mxfp4_repack_" + name)
        function.restype, function.argtypes = answer, arguments
    return found


def _error(functions: Any, status: int, files: Sequence[str], names: Sequence[str] = ()) -> BlobError:
    """The last error as an exception. `files`: paths, one of which the text may begin with; the first is
    named if none does. `names`: of tensors, one of which may follow."""
    kind = _FAULTS.get(functions.mxfp4_repack_last_fault(), FormatError) if status == _INPUT else BlobError
    what = functions.mxfp4_repack_last_error().decode(errors="replace")
    file = next((path for path in files if what.startswith(path + ": ")), None)
    if file is None:
        return kind(files[0], "", what)
    what = what[len(file) + 2:]
    key = next((name for name in names if what.startswith(name + ": ")), "")
    return kind(file, key, what[len(key) + 2:] if key else what)


class NativeBlob:
    """One rank's blob, open in the library as long as this object lives. Layer files are opened when they
    are first used."""

    handle: Any = None  # where __init__ did not run: of a copy that pickle could not make

    def __init__(self, root: str, manifest_path: str, direct: bool) -> None:
        self.handle = POINTER()
        self.functions = library()
        options = structures.OpenOptions(ctypes.sizeof(structures.OpenOptions), direct=direct, lazy=1)
        status = self.functions.mxfp4_repack_open(
            os.fsencode(root), ctypes.byref(options), ctypes.byref(self.handle))
        self._opened(status, manifest_path)

    def _opened(self, status: int, file: str) -> None:
        if status != OK:
            raise _error(self.functions, status, [file])
        size = ctypes.c_size_t()
        text = self.functions.mxfp4_repack_manifest(self.handle, ctypes.byref(size))
        self.manifest: bytes = ctypes.string_at(text, size.value)

    def __del__(self) -> None:
        if self.handle:
            self.functions.mxfp4_repack_close(self.handle)


class NativeCheckpoint(NativeBlob):
    """A checkpoint in place of a blob: its layers are made when they are read."""

    def __init__(self, path: str, *, conversion: Optional[bytes] = None, deployment: bytes = b"") -> None:
        """conversion: one rank's manifest; without it the library decides for `deployment`. Raises CommandError
        where convert() would refuse the deployment."""
        self.handle = POINTER()
        self.functions = library()
        opening = (self.functions.mxfp4_repack_open_checkpoint_for if conversion is None
                   else self.functions.mxfp4_repack_open_checkpoint)
        status = opening(os.fsencode(path), deployment if conversion is None else conversion,
                         ctypes.byref(self.handle))
        if conversion is None and status in _REFUSALS:
            raise CommandError("open_checkpoint", self.functions.mxfp4_repack_last_error().decode(errors="replace"),
                               status, _REFUSALS[status], file=path)
        self._opened(status, path)


def require_same_checkpoint(path: str, conversion: bytes) -> None:
    """Raises MismatchError unless the blob whose manifest `conversion` is was made from this checkpoint: by samples
    of its experts."""
    functions = library()
    status = functions.mxfp4_repack_same_checkpoint(os.fsencode(path), conversion)
    if status != OK:
        raise _error(functions, status, [path])


class StoredTensor(NamedTuple):
    """A tensor of a safetensors file."""

    name: str
    dtype: str  # safetensors name
    shape: Tuple[int, ...]
    offset: int  # of its first byte, in the file's data
    nbytes: int


class NativeSafetensors(NativeBlob):
    """A safetensors file in place of a blob: one layer, with the tensors as they are stored."""

    def __init__(self, path: str) -> None:
        self.handle = POINTER()
        self.functions = library()
        self._opened(self.functions.mxfp4_repack_open_safetensors(
            os.fsencode(path), ctypes.byref(self.handle)), path)
        facts = structures.Layer(struct_size=ctypes.sizeof(structures.Layer))
        self.functions.mxfp4_repack_get_layer(self.handle, 0, ctypes.byref(facts))
        self.tensors = tuple(self._tensor(number) for number in range(facts.num_tensors))

    def _tensor(self, number: int) -> StoredTensor:
        found = structures.Tensor(struct_size=ctypes.sizeof(structures.Tensor))
        self.functions.mxfp4_repack_get_tensor(self.handle, 0, number, ctypes.byref(found))
        return StoredTensor(found.name.decode(), found.dtype.decode(), tuple(found.shape[:found.num_dims]),
                            found.offset, found.bytes)


class NativeLayer:
    """One layer of an open blob, its file open. `number`: its place in the manifest; `names` and `sizes`:
    names and bytes of its tensors."""

    def __init__(self, blob: NativeBlob, number: int, path: str, names: Sequence[str],
                 sizes: Sequence[int], compressed: bool) -> None:
        self.path, self.number = path, number
        self._blob: Optional[NativeBlob] = blob
        self._names, self._sizes, self._compressed = names, sizes, compressed
        self._facts()

    def _facts(self) -> structures.Layer:
        blob, facts = self.blob(), structures.Layer(struct_size=ctypes.sizeof(structures.Layer))
        self.check(blob.functions.mxfp4_repack_get_layer(blob.handle, self.number, ctypes.byref(facts)))
        return facts

    def blob(self) -> NativeBlob:
        """The blob that the layer belongs to. ReadError: the layer was closed."""
        if self._blob is None:
            raise ReadError(self.path, "", "is closed")
        return self._blob

    def close(self) -> None:
        self._blob = None

    @property
    def direct(self) -> bool:
        return self._blob is not None and bool(self._facts().direct)

    def check(self, status: int) -> None:
        """Raises the library's last error unless `status` says that there is none."""
        if status == OK:
            return
        raise _error(self.blob().functions, status, [self.path], self._names)

    def check_file(self, threads: int) -> None:
        """Reads the whole file and compares its checksum with the manifest's."""
        blob, options = self.blob(), structures.ReadOptions(ctypes.sizeof(structures.ReadOptions), threads=threads)
        self.check(blob.functions.mxfp4_repack_check_file(blob.handle, self.number, ctypes.byref(options)))

    def requests(self, tensors: Sequence[int], addresses: Optional[Sequence[int]] = None) -> Any:
        """What asks the library for the tensors of these numbers, whole; addresses: where to, if that is known."""
        return (structures.Request * len(tensors))(*(
            structures.Request(self.number, tensor, 0, address, self._sizes[tensor])
            for tensor, address in zip(tensors, addresses or [None] * len(tensors))))

    def read_into(self, tensor: int, begin: int, out: Bytes, threads: int = 1) -> None:
        """Fills `out` with bytes of a tensor from `begin` on. A whole tensor is compared with the manifest's
        checksum, a part of a compressed file with those of its frames. Thread-safe."""
        blob, whole = self.blob(), out.size == self._sizes[tensor]
        options = structures.ReadOptions(ctypes.sizeof(structures.ReadOptions), threads=threads,
                               verify=int(whole or self._compressed))
        request = structures.Request(self.number, tensor, begin, out.ctypes.data, out.size)
        self.check(blob.functions.mxfp4_repack_read(blob.handle, ctypes.byref(request), 1, ctypes.byref(options)))
