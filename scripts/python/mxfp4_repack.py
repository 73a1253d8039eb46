"""Reads the blobs that mxfp4-repack writes (man 5 mxfp4-repack-container, format version 1).

    import mxfp4_repack

    with mxfp4_repack.open_blob("packed/") as blob:
        with blob.layer(blob.layers[0]) as layer:
            info = layer.info("w13_weight")          # dtype, shape, strides, layout parameters
            one = layer.numpy("w13_weight", expert=5)  # decodes the frames of that expert only
            tensors = layer.to_device("cuda")        # torch tensors, see mxfp4_repack_loader

Needs Python 3.9 and numpy. Compressed blobs also need the package zstandard or the shared library
libzstd; torch() and to_device() need torch. The package xxhash makes checksums faster.

Nothing in a file is believed: sizes, shapes, offsets and strides are checked before they are used,
a read gives all bytes or raises, and what a file says is compared with the manifest. Every failure
is a BlobError whose text is `<file>: <tensor or key>: <what>`.
"""
from __future__ import annotations

import ctypes
import json
import math
import os
import re
import struct
import threading
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Type

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Blob", "BlobError", "ChecksumError", "DependencyError", "FormatError", "Layer",
    "MismatchError", "NotABlobError", "NotFoundError", "RankError", "ReadError", "SizeError",
    "TensorInfo", "find_blobs", "open_blob", "tensor_view", "xxh3_128",
]

MANIFEST_NAME = "mxfp4_repack.json"
BLOB_FOLDER = "mxfp4_repack"  # of a model directory
FORMAT_VERSION = 1

_SEAL = b',\n  "manifest_xxh3_128": "'
_MAX_MANIFEST_BYTES = 256 << 20
_MAX_HEADER_BYTES = 100_000_000  # as in safetensors' own reader
_MAX_FRAME_BYTES = 64 << 20
_MAX_SLACK_BYTES = 1 << 20
_MAX_DIMS = 8
_HASH_PIECE = 4 << 20

_Bytes = NDArray[np.uint8]


class BlobError(Exception):
    """What is wrong (`what`) with which `file`, and where in it (`key`, a tensor or a JSON key)."""

    def __init__(self, file: str, key: str, what: str) -> None:
        self.file, self.key, self.what = file, key, what
        super().__init__(": ".join(part for part in (file, key, what) if part))


class NotABlobError(BlobError):
    """There is no blob at the path, or its conversion did not finish."""


class RankError(BlobError):
    """The rank that was asked for is not there, or none was named where there are several."""


class NotFoundError(BlobError):
    """A layer, its file, a tensor or an expert that is not in the blob."""


class FormatError(BlobError):
    """Malformed JSON, header, seek table or frame, or a format version that is not known."""


class SizeError(BlobError):
    """A file is shorter or longer than it should be."""


class ChecksumError(BlobError):
    """Bytes are not those that were written."""


class MismatchError(BlobError):
    """A layer file and the manifest, or a directory's name and the manifest, disagree."""


class ReadError(BlobError):
    """The operating system could not open or read a file."""


class DependencyError(BlobError):
    """A package, or a type that only newer releases of it have, is missing."""


# --- XXH3-128, seed 0: the algorithm of xxHash 0.8, for where the package xxhash is missing ---

_M64 = (1 << 64) - 1
_P32_1, _P32_2, _P32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
_P64_1, _P64_2, _P64_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P64_4, _P64_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_XXH3_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e")
_XXH3_BLOCK = 1024  # 16 stripes of 64 bytes, between two scrambles
_XXH3_SHORT = 240  # longest input with a formula of its own
_XXH3_START = (_P32_3, _P64_1, _P64_2, _P64_3, _P64_4, _P32_2, _P64_5, _P32_1)
_XXH3_SWAP = [1, 0, 3, 2, 5, 4, 7, 6]  # a lane's data goes to its neighbour's sum


def _u32(data: bytes, at: int) -> int:
    return int.from_bytes(data[at:at + 4], "little")


def _u64(data: bytes, at: int) -> int:
    return int.from_bytes(data[at:at + 8], "little")


def _key64(at: int) -> int:
    return _u64(_XXH3_SECRET, at)


def _swap64(x: int) -> int:
    return int.from_bytes(x.to_bytes(8, "little"), "big")


def _fold128(x: int) -> int:
    return (x & _M64) ^ (x >> 64)


def _xxh64_avalanche(x: int) -> int:
    x = (x ^ x >> 33) * _P64_2 & _M64
    x = (x ^ x >> 29) * _P64_3 & _M64
    return x ^ x >> 32


def _xxh3_avalanche(x: int) -> int:
    x = (x ^ x >> 37) * 0x165667919E3779F9 & _M64
    return x ^ x >> 32


def _xxh3_to_16(data: bytes) -> Tuple[int, int]:
    """(low, high) of 0 to 16 bytes."""
    size = len(data)
    if size == 0:
        return (_xxh64_avalanche(_key64(64) ^ _key64(72)),
                _xxh64_avalanche(_key64(80) ^ _key64(88)))
    if size <= 3:
        mixed = data[0] << 16 | data[size >> 1] << 24 | data[-1] | size << 8
        turned = int.from_bytes(mixed.to_bytes(4, "little"), "big")
        turned = (turned << 13 | turned >> 19) & 0xFFFFFFFF
        return (_xxh64_avalanche(mixed ^ _u32(_XXH3_SECRET, 0) ^ _u32(_XXH3_SECRET, 4)),
                _xxh64_avalanche(turned ^ _u32(_XXH3_SECRET, 8) ^ _u32(_XXH3_SECRET, 12)))
    if size <= 8:
        word = _u32(data, 0) | _u32(data, size - 4) << 32
        product = (word ^ _key64(16) ^ _key64(24)) * (_P64_1 + (size << 2))
        low, high = product & _M64, product >> 64
        high = high + (low << 1) & _M64
        low ^= high >> 3
        low = (low ^ low >> 35) * 0x9FB21C651E98DF25 & _M64
        return low ^ low >> 28, _xxh3_avalanche(high)
    first, last = _u64(data, 0), _u64(data, size - 8)
    product = (first ^ last ^ _key64(32) ^ _key64(40)) * _P64_1
    low, high = (product & _M64) + (size - 1 << 54) & _M64, product >> 64
    last ^= _key64(48) ^ _key64(56)
    high = high + last + (last & 0xFFFFFFFF) * (_P32_2 - 1) & _M64
    product = (low ^ _swap64(high)) * _P64_2
    return (_xxh3_avalanche(product & _M64),
            _xxh3_avalanche((product >> 64) + high * _P64_2 & _M64))


def _xxh3_to_240(data: bytes) -> Tuple[int, int]:
    """(low, high) of 17 to 240 bytes."""
    size = len(data)
    low, high = size * _P64_1 & _M64, 0

    def mix16(at: int, key: int) -> int:
        return _fold128((_u64(data, at) ^ _key64(key)) * (_u64(data, at + 8) ^ _key64(key + 8)))

    def mix32(one: int, two: int, key: int) -> None:
        nonlocal low, high
        low = (low + mix16(one, key) & _M64) ^ (_u64(data, two) + _u64(data, two + 8) & _M64)
        high = (high + mix16(two, key + 16) & _M64) ^ (_u64(data, one) + _u64(data, one + 8) & _M64)

    if size <= 128:
        for at in range((size - 1) // 32 * 16, -1, -16):
            mix32(at, size - 16 - at, 2 * at)
    else:
        for at in range(0, 128, 32):
            mix32(at, at + 16, at)
        low, high = _xxh3_avalanche(low), _xxh3_avalanche(high)
        for at in range(128, size - 31, 32):
            mix32(at, at + 16, at - 125)
        mix32(size - 16, size - 32, 103)
    total = low * _P64_1 + high * _P64_4 + size * _P64_2 & _M64
    return _xxh3_avalanche(low + high & _M64), -_xxh3_avalanche(total) & _M64


def _in_slots(lanes: Sequence[int]) -> int:
    """Eight 64-bit numbers in one integer, 128 bits apart: one addition or product is that of all.

    A call of numpy takes longer than the arithmetic on eight numbers.
    """
    return sum(lane << 128 * i for i, lane in enumerate(lanes))


_SLOTS = _in_slots([_M64] * 8)
_SCRAMBLE_KEYS = _in_slots([_key64(128 + 8 * i) for i in range(8)])


class _Xxh3:
    """A running XXH3-128 with the interface of xxhash.xxh3_128; some hundred MB a second."""

    def __init__(self) -> None:
        self._sums = _in_slots(_XXH3_START)
        self._tail = b""  # what no finished block holds; never empty once something was seen
        self._before = b""  # the 64 bytes before it
        self._size = 0
        keys = np.frombuffer(_XXH3_SECRET, "<u8")
        self._stripe_keys = np.stack([keys[n:n + 8] for n in range(16)])

    def update(self, data: Any) -> None:
        """`data`: bytes or a contiguous buffer."""
        if memoryview(data).nbytes == 0:
            return  # which cast() refuses
        view = memoryview(data).cast("B")
        self._size += len(view)
        # A block is finished only when bytes follow it: the last stripe is treated apart.
        if len(self._tail) + len(view) <= _XXH3_BLOCK:
            self._tail += bytes(view)
            return
        if self._tail:
            take = -len(self._tail) % _XXH3_BLOCK
            self._tail += bytes(view[:take])
            view = view[take:]
            if view:
                self._blocks(memoryview(self._tail))
                self._tail = b""
        whole = max(0, len(view) - 1) // _XXH3_BLOCK * _XXH3_BLOCK
        for at in range(0, whole, 256 * _XXH3_BLOCK):
            self._blocks(view[at:min(at + 256 * _XXH3_BLOCK, whole)])
        if view:
            self._tail = bytes(view[whole:])

    def _stripes(self, stripes: NDArray[np.uint64], keys: NDArray[np.uint64],
                 ) -> NDArray[np.uint64]:
        """What stripes <u8 [..., n, 8] add to the sums, [..., 8]."""
        keyed = stripes ^ keys
        product = keyed >> np.uint64(32)
        keyed &= np.uint64(0xFFFFFFFF)
        product *= keyed
        sums: NDArray[np.uint64] = product.sum(axis=-2) + stripes.sum(axis=-2)[..., _XXH3_SWAP]
        return sums

    def _blocks(self, view: memoryview) -> None:
        stripes = np.frombuffer(view, "<u8").reshape(-1, 16, 8)
        slots = np.zeros((len(stripes), 8, 2), "<u8")
        slots[:, :, 0] = self._stripes(stripes, self._stripe_keys)
        added, sums = slots.tobytes(), self._sums
        for at in range(0, len(added), 128):
            sums = sums + int.from_bytes(added[at:at + 128], "little") & _SLOTS
            sums = ((sums ^ sums >> 47 & _SLOTS ^ _SCRAMBLE_KEYS) * _P32_1) & _SLOTS
        self._sums = sums
        self._before = bytes(view[-64:])

    def _long(self) -> Tuple[int, int]:
        tail = self._tail
        count = (len(tail) - 1) // 64
        sums = np.frombuffer(self._sums.to_bytes(128, "little"), "<u8")[::2].copy()
        if count:
            stripes = np.frombuffer(tail, "<u8", count * 8).reshape(count, 8)
            sums += self._stripes(stripes, self._stripe_keys[:count])
        last = np.frombuffer((self._before + tail)[-64:], "<u8").reshape(1, 8)
        sums += self._stripes(last, np.frombuffer(_XXH3_SECRET, "<u8", 8, 121))
        lanes = [int(lane) for lane in sums]

        def merge(start: int, key: int) -> int:
            for i in range(0, 8, 2):
                start += _fold128((lanes[i] ^ _key64(key + 8 * i)) *
                                  (lanes[i + 1] ^ _key64(key + 8 * i + 8)))
            return _xxh3_avalanche(start & _M64)

        return merge(self._size * _P64_1, 11), merge(~(self._size * _P64_2) & _M64, 117)

    def hexdigest(self) -> str:
        """32 hexadecimal digits, high half first."""
        if self._size <= 16:
            low, high = _xxh3_to_16(self._tail)
        elif self._size <= _XXH3_SHORT:
            low, high = _xxh3_to_240(self._tail)
        else:
            low, high = self._long()
        return f"{high:016x}{low:016x}"


def _new_checksum() -> Any:
    try:
        import xxhash
        return xxhash.xxh3_128()
    except (ImportError, AttributeError):  # releases before 2.0 have no XXH3
        return _Xxh3()


def xxh3_128(data: Any) -> str:
    """The manifest's checksum of a contiguous buffer: 32 hexadecimal digits."""
    checksum = _new_checksum()
    checksum.update(data)
    return str(checksum.hexdigest())


# --- JSON of which nothing is believed ---


class _Fields:
    """A JSON object of `file` at `path`; getters raise FormatError unless the type is right."""

    def __init__(self, file: str, value: Any, path: str = "") -> None:
        if not isinstance(value, dict):
            raise FormatError(file, path, "expected a JSON object")
        self.file, self.value, self.path = file, value, path

    def key(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def get(self, key: str, kind: type) -> Any:
        value = self.value.get(key)
        if type(value) is not kind:  # a bool is no integer here
            found = "nothing" if key not in self.value else type(value).__name__
            raise FormatError(self.file, self.key(key), f"expected {kind.__name__}, found {found}")
        return value

    def size(self, key: str) -> int:
        value: int = self.get(key, int)
        if not 0 <= value < 1 << 62:
            raise FormatError(self.file, self.key(key), f"{value} is no size")
        return value

    def object(self, key: str) -> "_Fields":
        return _Fields(self.file, self.get(key, dict), self.key(key))

    def objects(self, key: str) -> Iterator["_Fields"]:
        for i, item in enumerate(self.get(key, list)):
            yield _Fields(self.file, item, f"{self.key(key)}[{i}]")

    def sizes(self, key: str) -> Tuple[int, ...]:
        values = self.get(key, list)
        if len(values) > _MAX_DIMS or any(type(v) is not int or not 0 <= v < 1 << 62
                                          for v in values):
            raise FormatError(self.file, self.key(key), f"expected at most {_MAX_DIMS} sizes")
        return tuple(values)


def _parse_json(file: str, key: str, text: bytes) -> Any:
    def unique(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
        members = dict(pairs)
        if len(members) != len(pairs):
            raise ValueError("a key appears twice")
        return members

    try:
        return json.loads(text.decode("utf-8"), object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise FormatError(file, key, f"not JSON: {error}") from None


# --- tensors ---

# safetensors name -> (numpy type of the same width, torch name). Types that numpy does not have
# come as integers of their width.
_DTYPES: Dict[str, Tuple[str, str]] = {
    "U8": ("u1", "uint8"), "I8": ("i1", "int8"), "I32": ("<i4", "int32"),
    "F16": ("<f2", "float16"), "BF16": ("<u2", "bfloat16"), "F32": ("<f4", "float32"),
    "F8_E4M3": ("u1", "float8_e4m3fn"), "F8_E8M0": ("u1", "float8_e8m0fnu"),
}
_TORCH_BYTES = {
    "uint8": 1, "int8": 1, "float8_e4m3fn": 1, "float8_e8m0fnu": 1, "float4_e2m1fn_x2": 1,
    "float16": 2, "bfloat16": 2, "int32": 4, "float32": 4,
}


@dataclass(frozen=True)
class TensorInfo:
    """What the manifest says about a tensor. Shapes and strides count elements of torch_dtype."""

    name: str  # without the layer's prefix: "w13_weight"
    full_name: str
    torch_dtype: str  # "uint8", "float8_e8m0fnu", ...
    shape: Tuple[int, ...]  # as the kernel sees it
    strides: Tuple[int, ...]
    file_dtype: str  # safetensors name
    file_shape: Tuple[int, ...]  # as in the file: the same bytes, row-major
    nbytes: int
    offset: int  # bytes from the start of the file's data
    xxh3_128: str
    slack_bytes: int  # readable bytes that a kernel touches past the end
    flags: Tuple[str, ...]  # attributes that the engine sets on the tensor: "is_shuffled"
    storage: Mapping[str, Any]  # the manifest's storage object: layout, layout_kwargs, ...


def _row_major(shape: Sequence[int]) -> Tuple[int, ...]:
    strides, step = [], 1
    for dim in reversed(shape):
        strides.append(step)
        step *= max(dim, 1)
    return tuple(reversed(strides))


def _tensor_info(fields: _Fields, prefix: str, offset: int) -> TensorInfo:
    full_name = fields.get("name", str)
    if not full_name.startswith(prefix + "."):
        raise FormatError(fields.file, fields.key("name"), f"does not begin with {prefix}.")

    def refuse(key: str, what: str) -> FormatError:
        return FormatError(fields.file, full_name, f"{key}: {what}")

    file_dtype, file_shape = fields.get("dtype", str), fields.sizes("shape")
    if file_dtype not in _DTYPES:
        raise refuse("dtype", f"{file_dtype} is not known")
    numpy_dtype, torch_dtype = _DTYPES[file_dtype]
    itemsize = np.dtype(numpy_dtype).itemsize
    count = math.prod(file_shape)
    if count >= 1 << 60:
        raise refuse("shape", f"{list(file_shape)} is too large")
    storage = fields.object("storage")
    if "torch_dtype" in storage.value:
        torch_dtype = storage.get("torch_dtype", str)
    if _TORCH_BYTES.get(torch_dtype) != itemsize:
        raise refuse("torch_dtype", f"{torch_dtype} cannot view {file_dtype}")
    shape, strides = file_shape, _row_major(file_shape)
    if "storage_shape" in storage.value or "storage_strides" in storage.value:
        shape, strides = storage.sizes("storage_shape"), storage.sizes("storage_strides")
        last = sum((dim - 1) * step for dim, step in zip(shape, strides))
        if len(shape) != len(strides) or (0 not in shape and last >= count):
            raise refuse("storage_strides", f"{list(shape)} by {list(strides)} does not lie in "
                                            f"{count} elements")
    slack = storage.size("slack_bytes") if "slack_bytes" in storage.value else 0
    if slack > _MAX_SLACK_BYTES:
        raise refuse("slack_bytes", f"{slack}, at most {_MAX_SLACK_BYTES} are accepted")
    flags = storage.get("flags", list) if "flags" in storage.value else []
    if not all(isinstance(flag, str) and flag.isidentifier() for flag in flags):
        raise refuse("flags", "expected names")
    return TensorInfo(
        name=full_name[len(prefix) + 1:], full_name=full_name, torch_dtype=torch_dtype,
        shape=shape, strides=strides, file_dtype=file_dtype, file_shape=file_shape,
        nbytes=count * itemsize, offset=offset, xxh3_128=fields.get("xxh3_128", str),
        slack_bytes=slack, flags=tuple(flags), storage=storage.value)


def tensor_view(info: TensorInfo, flat: Any, file: str = "",
                shape: Optional[Sequence[int]] = None,
                strides: Optional[Sequence[int]] = None) -> Any:
    """The tensor as its kernel wants it over `flat`, a torch uint8 tensor of its bytes or more.

    torch_dtype, and unless given shape and strides, are info's; info.flags are set as attributes. A
    torch without float4_e2m1fn_x2 gives uint8, as engines do there; another missing type is a
    DependencyError that names `file`.
    """
    import torch
    dtype = getattr(torch, info.torch_dtype, None)
    if dtype is None and info.torch_dtype == "float4_e2m1fn_x2":
        dtype = torch.uint8
    if dtype is None:
        raise DependencyError(file, info.full_name,
                              f"torch {torch.__version__} has no {info.torch_dtype}")
    if shape is None or strides is None:
        shape, strides = info.shape, info.strides
    whole = flat.numel() - flat.numel() % _TORCH_BYTES[info.torch_dtype]
    tensor = flat[:whole].view(dtype).as_strided(shape, strides)
    for flag in info.flags:
        setattr(tensor, flag, True)
    return tensor


# --- zstd frames ---

_FrameDecoder = Callable[[_Bytes, _Bytes], None]  # (frame, out); raises ValueError


def _zstandard_decoder() -> _FrameDecoder:
    import zstandard

    def decode(frame: _Bytes, out: _Bytes) -> None:
        try:
            # With all of the input and room for all of the output this is one call of libzstd,
            # straight into `out`. What decompress() gives would be a copy more.
            with zstandard.ZstdDecompressor().stream_reader(frame.data) as reader:
                size, more = reader.readinto(out), reader.read(1)
        except zstandard.ZstdError as error:
            raise ValueError(str(error)) from None
        if size != out.size or more:
            raise ValueError(f"does not decode to {out.size} bytes")

    return decode


def _libzstd_decoder() -> _FrameDecoder:
    library = ctypes.CDLL("libzstd.so.1")
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    library.ZSTD_decompress.argtypes = [pointer, size, pointer, size]
    library.ZSTD_findFrameCompressedSize.argtypes = [pointer, size]
    library.ZSTD_decompress.restype = library.ZSTD_findFrameCompressedSize.restype = size

    def decode(frame: _Bytes, out: _Bytes) -> None:
        if library.ZSTD_findFrameCompressedSize(frame.ctypes.data, frame.size) != frame.size:
            raise ValueError("is no single zstd frame")
        if library.ZSTD_decompress(out.ctypes.data, out.size, frame.ctypes.data,
                                   frame.size) != out.size:  # an error is a very large size
            raise ValueError(f"does not decode to {out.size} bytes")

    return decode


def _frame_decoder(file: str) -> _FrameDecoder:
    for make in (_zstandard_decoder, _libzstd_decoder):
        try:
            return make()
        except (ImportError, OSError):
            continue
    raise DependencyError(file, "", "compressed; reading it needs the package zstandard or the "
                                    "library libzstd, or a blob made with --compress none")


@dataclass(frozen=True)
class _SeekTable:
    """Frame i is bytes [encoded[i], encoded[i + 1]) of the file, and gives [decoded[i], ...)."""

    encoded: NDArray[np.int64]  # [frames + 1]
    decoded: NDArray[np.int64]  # [frames + 1]
    checksums: NDArray[np.uint32]  # [frames]: low half of XXH64, as at the end of each frame


class _LayerFile:
    """An open layer file: its header and, when compressed, its seek table."""

    def __init__(self, path: str, compressed: bool) -> None:
        self.path = path
        self.decoded_bytes = 0
        self._lock = threading.Lock()
        try:
            self._file = open(path, "rb", buffering=0)
            self.size = os.fstat(self._file.fileno()).st_size
        except FileNotFoundError:
            raise NotFoundError(path, "", "missing") from None
        except OSError as error:
            raise ReadError(path, "", error.strerror or str(error)) from None
        self._decode: Optional[_FrameDecoder] = None
        self._frames: Optional[_SeekTable] = None
        try:
            if compressed:
                self._decode = _frame_decoder(path)
                self._frames = self._read_seek_table()
            self._read_header()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._file.close()

    def read_stored(self, offset: int, out: _Bytes) -> None:
        """Fills `out` (uint8) with the file's own bytes from `offset` on. Thread-safe."""
        view, at = out.data, 0
        while at < len(view):
            try:
                count = os.preadv(self._file.fileno(), [view[at:]], offset + at)
            except (OSError, ValueError) as error:
                raise ReadError(self.path, "", str(error)) from None
            if count == 0:
                raise SizeError(self.path, "", f"ends at byte {offset + at}, which should hold "
                                               f"{len(view) - at} more")
            at += count

    def checksum(self) -> str:
        """XXH3-128 of the whole file."""
        checksum, piece = _new_checksum(), np.empty(_HASH_PIECE, "u1")
        for at in range(0, self.size, _HASH_PIECE):
            part = piece[:min(_HASH_PIECE, self.size - at)]
            self.read_stored(at, part)
            checksum.update(part)
        return str(checksum.hexdigest())

    def _read_seek_table(self) -> _SeekTable:
        if self.size < 17:
            raise SizeError(self.path, "seek table", f"the file has {self.size} bytes only")
        footer = np.empty(9, "u1")
        self.read_stored(self.size - 9, footer)
        count, descriptor, magic = struct.unpack("<IBI", footer.tobytes())
        if magic != 0x8F92EAB1 or descriptor != 0x80:
            raise FormatError(self.path, "seek table", "none at the end of the file; it may be "
                                                       "truncated")
        start = self.size - 17 - 12 * count
        if count == 0 or start < 0:
            raise FormatError(self.path, "seek table", f"{count} frames do not fit the file")
        table = np.empty(8 + 12 * count, "u1")
        self.read_stored(start, table)
        if struct.unpack("<II", table[:8].tobytes()) != (0x184D2A5E, 12 * count + 9):
            raise FormatError(self.path, "seek table", f"{count} frames do not fit the file")
        entries = table[8:].view("<u4").reshape(count, 3)
        sizes = entries[:, :2].astype(np.int64)
        if sizes.min() < 1 or sizes[:, 1].max() > _MAX_FRAME_BYTES:
            raise FormatError(self.path, "seek table", "a frame is empty or larger than "
                                                       f"{_MAX_FRAME_BYTES} bytes")
        offsets = np.zeros((2, count + 1), np.int64)
        np.cumsum(sizes.T, axis=1, out=offsets[:, 1:])
        if offsets[0, -1] != start:
            raise FormatError(self.path, "seek table",
                              f"its frames take {offsets[0, -1]} bytes, the file has {start}")
        return _SeekTable(offsets[0], offsets[1], entries[:, 2].copy())

    def _read_header(self) -> None:
        end = self.size if self._frames is None else int(self._frames.decoded[-1])
        if end < 8:
            raise SizeError(self.path, "header", f"{end} bytes cannot hold it")
        head = np.empty(8, "u1")
        self._read(0, head)
        length = int(head.view("<u8")[0])
        if length > min(_MAX_HEADER_BYTES, end - 8):
            raise SizeError(self.path, "header", f"its {length} bytes run past the end, or limit")
        self.data_start, self.data_size = 8 + length, end - 8 - length
        if self._frames is not None and self._frames.decoded[1] != self.data_start:
            raise FormatError(self.path, "header", "is not a frame of its own")
        text = np.empty(length, "u1")
        self._read(8, text)
        self.header: Dict[str, Any] = _Fields(
            self.path, _parse_json(self.path, "header", text.tobytes()), "header").value

    def read_into(self, offset: int, out: _Bytes) -> None:
        """Fills `out` with data bytes from `offset` on, decoding only frames that hold some.

        `offset` counts from the start of the data. Thread-safe.
        """
        if not 0 <= offset <= self.data_size - out.size:
            raise SizeError(self.path, "", f"data bytes {offset} to {offset + out.size} of "
                                           f"{self.data_size} were asked for")
        self._read(self.data_start + offset, out)

    def cuts(self, begin: int, end: int, limit: int) -> Iterator[Tuple[int, int]]:
        """Cuts data bytes [begin, end) into pieces of at most `limit` bytes, at frames' ends where
        they can be."""
        while begin < end:
            stop = min(begin + limit, end)
            if self._frames is not None and stop < end:
                ends = self._frames.decoded
                last = int(ends[np.searchsorted(ends, self.data_start + stop, "right") - 1])
                if last - self.data_start > begin:
                    stop = last - self.data_start
            yield begin, stop
            begin = stop

    def _read(self, at: int, out: _Bytes) -> None:
        if self._frames is None:
            self.read_stored(at, out)
            self._count(out.size)
            return
        frames, done = self._frames, 0
        first = int(np.searchsorted(frames.decoded, at, "right")) - 1
        last = int(np.searchsorted(frames.decoded, at + out.size, "left"))
        scratch = np.empty(int(np.diff(frames.encoded[first:last + 1]).max(initial=0)), "u1")
        for i in range(first, last):
            size = int(frames.decoded[i + 1] - frames.decoded[i])
            skip = at + done - int(frames.decoded[i])
            take = min(size - skip, out.size - done)
            if take == size:
                self._decode_frame(i, scratch, out[done:done + size])
            else:
                whole = np.empty(size, "u1")
                self._decode_frame(i, scratch, whole)
                out[done:done + take] = whole[skip:skip + take]
            done += take

    def _decode_frame(self, i: int, scratch: _Bytes, out: _Bytes) -> None:
        assert self._frames is not None and self._decode is not None
        begin, end = int(self._frames.encoded[i]), int(self._frames.encoded[i + 1])
        frame = scratch[:end - begin]
        self.read_stored(begin, frame)
        # Byte 4 is the frame header's descriptor, whose bit 2 says that a checksum ends the frame:
        # then libzstd compares it with the data.
        if frame.size < 9 or frame[:4].tobytes() != b"\x28\xb5\x2f\xfd" or not frame[4] & 4:
            raise FormatError(self.path, f"frame {i}", "is no zstd frame with a checksum")
        if frame[-4:].tobytes() != self._frames.checksums[i].tobytes():
            raise ChecksumError(self.path, f"frame {i}", "differs from the seek table")
        try:
            self._decode(frame, out)
        except ValueError as error:
            raise ChecksumError(self.path, f"frame {i}", str(error)) from None
        self._count(out.size)

    def _count(self, size: int) -> None:
        with self._lock:
            self.decoded_bytes += size


# --- layers and blobs ---


class Layer:
    """One MoE layer of a blob, its file open. A context manager; reads are thread-safe.

    prefix: module path in the checkpoint; entry: the manifest's object of this layer;
    num_experts: local experts; tensors: names without prefix, in file order.
    """

    def __init__(self, file: _LayerFile, manifest: Mapping[str, Any], entry: Mapping[str, Any],
                 infos: Sequence[TensorInfo]) -> None:
        self._file = file
        self.entry = entry
        self.prefix: str = entry["prefix"]
        self.num_experts: int = entry["sizes"]["num_experts"]
        self._infos = {info.name: info for info in infos}
        self.tensors: Tuple[str, ...] = tuple(self._infos)
        self._check_header()
        self._check_metadata(manifest)

    def __enter__(self) -> "Layer":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file; later reads raise."""
        self._file.close()

    @property
    def path(self) -> str:
        """The layer's file."""
        return self._file.path

    @property
    def decoded_bytes(self) -> int:
        """Bytes of the safetensors file inside that were read or decoded so far, with header."""
        return self._file.decoded_bytes

    def info(self, name: str) -> TensorInfo:
        """`name` as in `tensors`. Raises NotFoundError."""
        info = self._infos.get(name)
        if info is None:
            raise NotFoundError(self.path, f"{self.prefix}.{name}", "no such tensor in this layer")
        return info

    def numpy(self, name: str, expert: Optional[int] = None, *,
              stored: bool = False) -> NDArray[Any]:
        """A new array [info.shape], or of one local expert [info.shape[1:]], read into memory.

        Strides are the kernel's; with `stored` shape is the file's, row-major. bfloat16 comes as
        uint16 and the 8-bit and 4-bit floats as uint8. Raises NotFoundError for an expert that is
        not there or a tensor without an outermost expert axis; all that a read can raise.
        """
        info, begin, size, shape, strides = self._slice(name, expert, stored)
        flat = np.empty(size, "u1")
        self._file.read_into(begin, flat)
        array = flat.view(_DTYPES[info.file_dtype][0])
        return np.lib.stride_tricks.as_strided(
            array, shape, [step * array.itemsize for step in strides])

    def torch(self, name: str, device: Any = None, expert: Optional[int] = None) -> Any:
        """The same as a torch tensor of info.torch_dtype, info.flags set; see tensor_view.

        info.slack_bytes more bytes are allocated behind the tensor. A whole tensor goes to a GPU
        as in to_device(); one expert is an ordinary copy.
        """
        import torch
        if expert is None and device is not None and torch.device(device).type == "cuda":
            return self.to_device(device, [name])[name]
        info, begin, size, shape, strides = self._slice(name, expert, False)
        flat = torch.empty(size + info.slack_bytes, dtype=torch.uint8)
        self._file.read_into(begin, flat.numpy()[:size])
        flat[size:].zero_()
        flat = flat if device is None else flat.to(device)
        return tensor_view(info, flat, self.path, shape, strides)

    def to_device(self, device: Any, names: Optional[Sequence[str]] = None) -> Dict[str, Any]:
        """{name: torch tensor} of all tensors, or of `names`, on `device`; mxfp4_repack_loader."""
        import mxfp4_repack_loader
        return mxfp4_repack_loader.load(self, device, names)

    def read_into(self, name: str, begin: int, out: _Bytes) -> None:
        """Fills `out`, contiguous uint8, with the tensor's bytes from `begin` on. Thread-safe."""
        info = self.info(name)
        if not 0 <= begin <= info.nbytes - out.size:
            raise SizeError(self.path, info.full_name, f"bytes {begin} to {begin + out.size} of "
                                                       f"{info.nbytes} were asked for")
        self._file.read_into(info.offset + begin, out)

    def pieces(self, name: str, limit: int, begin: int = 0) -> Iterator[Tuple[int, int]]:
        """Cuts a tensor's bytes from `begin` on into (begin, end) of at most `limit` bytes, at ends
        of what decodes alone where `limit` lets it."""
        info = self.info(name)
        for begin, end in self._file.cuts(info.offset + begin, info.offset + info.nbytes, limit):
            yield begin - info.offset, end - info.offset

    def check_file(self) -> None:
        """Reads the whole file; ChecksumError unless it is as it was written."""
        if self._file.checksum() != self.entry["xxh3_128"]:
            raise ChecksumError(self.path, "", "the file's checksum differs from the manifest's")

    def check_tensors(self) -> None:
        """Reads and decodes every tensor; ChecksumError names the first that differs."""
        for name, info in self._infos.items():
            if xxh3_128(np.ascontiguousarray(self.numpy(name, stored=True))) != info.xxh3_128:
                raise ChecksumError(self.path, info.full_name, "checksum differs")

    def _slice(self, name: str, expert: Optional[int], stored: bool,
               ) -> Tuple[TensorInfo, int, int, Tuple[int, ...], Tuple[int, ...]]:
        """(info, first data byte, bytes, shape, strides) of a tensor or one expert of it."""
        info = self.info(name)
        shape, strides = info.shape, info.strides
        if stored:
            shape, strides = info.file_shape, _row_major(info.file_shape)
        if expert is None:
            return info, info.offset, info.nbytes, shape, strides
        count = self.num_experts
        if not 0 <= expert < count:
            raise NotFoundError(self.path, info.full_name, f"expert {expert} of {count} local ones")
        elements = math.prod(info.file_shape)
        if (info.file_shape[:1] != (count,) or shape[:1] != (count,)
                or strides[0] * count != elements):
            raise NotFoundError(self.path, info.full_name,
                                f"{list(shape)} has no outermost axis of {count} experts")
        size = info.nbytes // count
        return info, info.offset + expert * size, size, shape[1:], strides[1:]

    def _check_header(self) -> None:
        header, at = self._file.header, 0
        for info in self._infos.values():
            found = header.get(info.full_name)
            want = {"dtype": info.file_dtype, "shape": list(info.file_shape),
                    "data_offsets": [at, at + info.nbytes]}
            if found != want:
                raise MismatchError(self.path, info.full_name,
                                    f"the header says {found}, the manifest {want}")
            at += info.nbytes
        extra = header.keys() - {info.full_name for info in self._infos.values()} - {"__metadata__"}
        if extra:
            raise MismatchError(self.path, min(extra), "is not in the manifest")
        if at != self._file.data_size:
            raise SizeError(self.path, "", f"{self._file.data_size} bytes of data, the tensors "
                                           f"take {at}")

    def _check_metadata(self, manifest: Mapping[str, Any]) -> None:
        found = self._file.header.get("__metadata__")
        want = {"family": manifest["target"]["family"],
                "w13_order": manifest["model"].get("w13_order")}
        if manifest["layout"] != "loaded":
            storage = {info.full_name: info.storage for info in self._infos.values()}
            want.update({
                "mxfp4_repack.format_version": str(FORMAT_VERSION),
                "mxfp4_repack.revision": manifest["revision"],
                "mxfp4_repack.layout": manifest["layout"],
                "mxfp4_repack.target": manifest["target"],
                "mxfp4_repack.rank": manifest["rank"],
                "mxfp4_repack.sizes": self.entry["sizes"],
                "mxfp4_repack.storage": storage})
        for key, value in want.items():
            text = found.get(key) if isinstance(found, dict) else None
            if not isinstance(value, str) and isinstance(text, str):
                text = _parse_json(self.path, f"__metadata__.{key}", text.encode())
            if text != value:
                raise MismatchError(self.path, f"__metadata__.{key}", "differs from the manifest")


class Blob:
    """An open blob of one rank. A context manager.

    root: its directory; manifest: the JSON object; layers: prefixes in order; rank, ranks: which of
    how many.
    """

    def __init__(self, root: str, manifest: Mapping[str, Any], check: str) -> None:
        self.root, self.manifest = root, manifest
        self._check = check
        path = os.path.join(root, MANIFEST_NAME)
        fields = _Fields(path, manifest)
        if fields.get("format", str) != "mxfp4-repack":
            raise FormatError(path, "format", "expected mxfp4-repack")
        if fields.get("format_version", int) != FORMAT_VERSION:
            raise FormatError(path, "format_version",
                              f"{manifest['format_version']} is not known, {FORMAT_VERSION} is")
        for key in ("revision", "layout"):
            fields.get(key, str)
        fields.object("target").get("family", str)
        fields.object("model").get("w13_order", str)
        self._compressed = fields.object("compression").get("method", str) == "zstd"
        rank = fields.object("rank")
        self.rank, self.ranks = rank.size("rank"), rank.size("num_ranks")
        self._entries: Dict[str, Mapping[str, Any]] = {}
        self._infos: Dict[str, List[TensorInfo]] = {}
        for entry in fields.objects("layers"):
            self._add(entry)
        self.layers: Tuple[str, ...] = tuple(self._entries)

    def __enter__(self) -> "Blob":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        """A blob holds no open file; its layers do."""

    def _add(self, entry: _Fields) -> None:
        prefix = entry.get("prefix", str)
        if prefix in self._entries:
            raise FormatError(entry.file, entry.key("prefix"), f"{prefix} appears twice")
        name = entry.get("file", str)
        if not name or name.startswith(".") or "/" in name or "\0" in name:
            raise FormatError(entry.file, entry.key("file"), "expected a plain file name")
        entry.size("size"), entry.get("xxh3_128", str)
        entry.object("sizes").size("num_experts")
        infos: List[TensorInfo] = []
        at = 0
        for item in entry.objects("tensors"):
            infos.append(_tensor_info(item, prefix, at))
            at += infos[-1].nbytes
        if len({info.name for info in infos}) != len(infos):
            raise FormatError(entry.file, entry.key("tensors"), "a name appears twice")
        self._entries[prefix], self._infos[prefix] = entry.value, infos

    def file_of(self, prefix: str) -> str:
        """Path of a layer's file. Raises NotFoundError."""
        if prefix not in self._entries:
            raise NotFoundError(self.root, prefix, "no such layer in the blob")
        return os.path.join(self.root, self._entries[prefix]["file"])

    def entry(self, prefix: str) -> Mapping[str, Any]:
        """The manifest's object of a layer. Raises NotFoundError."""
        self.file_of(prefix)
        return self._entries[prefix]

    def infos(self, prefix: str) -> Tuple[TensorInfo, ...]:
        """The layer's tensors, in file order, without opening its file. Raises NotFoundError."""
        self.file_of(prefix)
        return tuple(self._infos[prefix])

    def check_size(self, prefix: str) -> None:
        """Raises unless the layer's file is there with the manifest's size."""
        path, want = self.file_of(prefix), self._entries[prefix]["size"]
        try:
            size = os.stat(path).st_size
        except FileNotFoundError:
            raise NotFoundError(path, "", "missing") from None
        except OSError as error:
            raise ReadError(path, "", error.strerror or str(error)) from None
        if size != want:
            raise SizeError(path, "", f"{size} bytes, {want} in the manifest")

    def layer(self, prefix: str) -> Layer:
        """Opens a layer and compares its size, header and metadata with the manifest.

        With check="checksums" the whole file is read and hashed first.
        """
        self.check_size(prefix)
        file = _LayerFile(self.file_of(prefix), self._compressed)
        try:
            layer = Layer(file, self.manifest, self._entries[prefix], self._infos[prefix])
            if self._check == "checksums":
                layer.check_file()
        except BaseException:
            file.close()
            raise
        return layer

    def verify(self) -> None:
        """Reads everything: raises at the first file or tensor that is not as it was written."""
        for prefix in self.layers:
            with self.layer(prefix) as layer:
                layer.check_file()
                layer.check_tensors()


def _read_manifest(path: str) -> Mapping[str, Any]:
    try:
        with open(path, "rb") as file:
            text = file.read(_MAX_MANIFEST_BYTES + 1)
    except OSError as error:
        raise ReadError(path, "", error.strerror or str(error)) from None
    if len(text) > _MAX_MANIFEST_BYTES:
        raise SizeError(path, "", f"more than {_MAX_MANIFEST_BYTES} bytes")
    at = text.rfind(_SEAL)
    if at < 0:
        raise FormatError(path, "manifest_xxh3_128", "missing; the file may be truncated")
    if text[at + len(_SEAL):] != xxh3_128(text[:at]).encode() + b'"\n}\n':
        raise ChecksumError(path, "manifest_xxh3_128", "the manifest was changed after it was "
                                                       "written")
    manifest: Mapping[str, Any] = _Fields(path, _parse_json(path, "", text)).value
    return manifest


def _has_manifest(directory: str) -> bool:
    return os.path.exists(os.path.join(directory, MANIFEST_NAME))


def find_blobs(path: "os.PathLike[str] | str") -> Dict[Optional[int], str]:
    """Directories of the blobs at `path`, a blob's directory, that of its ranks, or a model's.

    {None: directory} when the blob stands alone, else {rank: directory}. Raises NotABlobError when
    there is none, RankError when rank directories of different sets lie there.
    """
    root = os.fspath(path)
    for directory in (root, os.path.join(root, BLOB_FOLDER)):
        if _has_manifest(directory):
            return {None: directory}
        try:
            names = sorted(os.listdir(directory))
        except OSError:
            continue
        matches = [m for m in (re.fullmatch(r"rank-(\d+)-of-(\d+)", n) for n in names) if m]
        if len({m[2] for m in matches}) > 1:
            raise RankError(directory, "", "holds ranks of different sets")
        if matches:
            return {int(m[1]): os.path.join(directory, m[0]) for m in matches}
    raise NotABlobError(root, "", f"no {MANIFEST_NAME}: not a blob, or not finished")


def open_blob(path: "os.PathLike[str] | str", *, rank: Optional[int] = None,
              check: str = "sizes") -> Blob:
    """Opens the blob of `rank` at `path` (see find_blobs) and checks its manifest's seal.

    rank: which one; may be left out where `path` is one rank's blob. check: "none" looks at a
    layer's file when layer() opens it (size, header and metadata, always), "sizes" at the sizes of
    all files now, "checksums" also makes layer() hash the file. Raises a BlobError of a kind that
    says why.
    """
    if check not in ("none", "sizes", "checksums"):
        raise ValueError(f"check: {check!r}, expected none, sizes or checksums")
    found = find_blobs(path)
    if None in found:
        directory = found[None]
    elif rank is None:
        ranks = sorted(key for key in found if key is not None)
        raise RankError(os.fspath(path), "", f"holds ranks {ranks}; say which")
    elif rank not in found:
        raise RankError(os.fspath(path), "", f"rank {rank} is not there")
    else:
        directory = found[rank]
    if not _has_manifest(directory):
        raise NotABlobError(directory, "", f"no {MANIFEST_NAME}: the conversion did not finish")
    blob = Blob(directory, _read_manifest(os.path.join(directory, MANIFEST_NAME)), check)
    if rank is not None and blob.rank != rank:
        raise RankError(directory, "rank",
                        f"the blob is rank {blob.rank} of {blob.ranks}, not {rank}")
    if not 0 <= blob.rank < blob.ranks:
        raise FormatError(directory, "rank", f"{blob.rank} of {blob.ranks}")
    name = re.fullmatch(r"rank-(\d+)-of-(\d+)", os.path.basename(os.path.abspath(directory)))
    if name and (int(name[1]), int(name[2])) != (blob.rank, blob.ranks):
        raise MismatchError(directory, "rank",
                            f"the manifest is that of rank {blob.rank} of {blob.ranks}")
    if check != "none":
        for prefix in blob.layers:
            blob.check_size(prefix)
    return blob
