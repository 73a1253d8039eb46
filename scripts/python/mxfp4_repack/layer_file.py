"""A layer's file, read by Python alone: its bytes, its zstd frames and its safetensors header."""
from __future__ import annotations

import errno
import os
import stat
import struct
import threading
from dataclasses import dataclass
from typing import Any, Iterator, Optional, Tuple

import numpy as np
from numpy.typing import NDArray

from mxfp4_repack.checksum import new_checksum
from mxfp4_repack.errors import (
    ChecksumError, DependencyError, FormatError, NotFoundError, ReadError, SizeError)

_MAX_FRAME_BYTES = 64 << 20
_HASH_PIECE = 4 << 20
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"

Bytes = NDArray[np.uint8]


def open_regular(path: str) -> Any:
    """A binary file, unbuffered. Raises OSError, also for a FIFO or device; never waits for one."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "is a directory" if stat.S_ISDIR(mode) else "is no regular file")
    return os.fdopen(descriptor, "rb", buffering=0)


def is_compressed(path: str) -> bool:
    """Whether a file begins with zstd's magic number. False if it cannot be read."""
    try:
        with open_regular(path) as file:
            return bool(file.read(4) == _ZSTD_MAGIC)
    except OSError:
        return False


def _import_zstandard(file: str) -> Any:
    try:
        import zstandard
    except ImportError:
        raise DependencyError(file, "", "reading a compressed layer needs libmxfp4_repack.so.0 or "
                                        "the package zstandard") from None
    return zstandard


def _decode(frame: Bytes, out: Bytes) -> None:
    """Decodes one zstd frame straight into `out`. Raises ValueError."""
    zstandard = _import_zstandard("")
    try:
        # Given the whole input and room for the whole output, this is one call of libzstd;
        # decompress() would copy the output once more.
        with zstandard.ZstdDecompressor().stream_reader(frame.data) as reader:
            size, more = reader.readinto(out), reader.read(1)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from None
    if size != out.size or more:
        raise ValueError(f"does not decode to {out.size} bytes")


@dataclass(frozen=True)
class _SeekTable:
    """Frame i is bytes [encoded[i], encoded[i + 1]) of the file, and decodes to the bytes
    [decoded[i], decoded[i + 1])."""

    encoded: NDArray[np.int64]  # [frames + 1]
    decoded: NDArray[np.int64]  # [frames + 1]
    checksums: NDArray[np.uint32]  # [frames]: low half of XXH64, as at the end of each frame


class LayerFile:
    """An open layer file: its header and, when compressed, its seek table."""

    direct = False  # it is read through the page cache

    def __init__(self, path: str, compressed: bool, header_bytes: int) -> None:
        """`header_bytes`: the size that the header must have."""
        self.path = path
        self.decoded_bytes = 0
        self._lock = threading.Lock()
        try:
            self._file = open_regular(path)
            self.size = os.fstat(self._file.fileno()).st_size
        except FileNotFoundError:
            raise NotFoundError(path, "", "missing") from None
        except OSError as error:
            raise ReadError(path, "", error.strerror or str(error)) from None
        self._frames: Optional[_SeekTable] = None
        try:
            if compressed:
                _import_zstandard(path)
                self._frames = self._read_seek_table()
            self._read_header(header_bytes)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._file.close()

    def read_stored(self, offset: int, out: Bytes) -> None:
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
        checksum, piece = new_checksum(), np.empty(_HASH_PIECE, "u1")
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

    def _read_header(self, length: int) -> None:
        end = self.size if self._frames is None else int(self._frames.decoded[-1])
        self.data_start, self.data_size = 8 + length, end - 8 - length
        if self.data_size < 0:
            raise SizeError(self.path, "header", f"{end} bytes cannot hold its {length}")
        if self._frames is not None and self._frames.decoded[1] != self.data_start:
            raise FormatError(self.path, "header", f"is not a frame of its {self.data_start} bytes")
        head = np.empty(self.data_start, "u1")
        self._read(0, head)
        found = int(head[:8].view("<u8")[0])
        if found != length:
            raise SizeError(self.path, "header", f"{found} bytes, {length} by the manifest")
        self.header = head[8:].tobytes()  # JSON text

    def read_into(self, offset: int, out: Bytes, threads: int = 1) -> None:
        """Fills `out` with data bytes from `offset` on, decoding only the frames that hold them.

        `offset` counts from the start of the data. Thread-safe. Only the calling thread reads,
        whatever `threads` is.
        """
        if not 0 <= offset <= self.data_size - out.size:
            raise SizeError(self.path, "", f"data bytes {offset} to {offset + out.size} of "
                                           f"{self.data_size} were asked for")
        self._read(self.data_start + offset, out)

    def cuts(self, begin: int, end: int, limit: int) -> Iterator[Tuple[int, int]]:
        """Cuts data bytes [begin, end) into pieces of at most `limit` bytes, at the ends of frames
        where `limit` allows."""
        while begin < end:
            stop = min(begin + limit, end)
            if self._frames is not None and stop < end:
                ends = self._frames.decoded
                last = int(ends[np.searchsorted(ends, self.data_start + stop, "right") - 1])
                if last - self.data_start > begin:
                    stop = last - self.data_start
            yield begin, stop
            begin = stop

    def _read(self, at: int, out: Bytes) -> None:
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

    def _decode_frame(self, i: int, scratch: Bytes, out: Bytes) -> None:
        assert self._frames is not None
        begin, end = int(self._frames.encoded[i]), int(self._frames.encoded[i + 1])
        frame = scratch[:end - begin]
        self.read_stored(begin, frame)
        # Byte 4 is the frame header's descriptor. Its bit 2 says that a checksum ends the frame, and
        # libzstd compares the data with that checksum.
        if frame.size < 9 or frame[:4].tobytes() != _ZSTD_MAGIC or not frame[4] & 4:
            raise FormatError(self.path, f"frame {i}", "is no zstd frame with a checksum")
        if frame[-4:].tobytes() != self._frames.checksums[i].tobytes():
            raise ChecksumError(self.path, f"frame {i}", "differs from the seek table")
        try:
            _decode(frame, out)
        except ValueError as error:
            raise ChecksumError(self.path, f"frame {i}", str(error)) from None
        self._count(out.size)

    def _count(self, size: int) -> None:
        with self._lock:
            self.decoded_bytes += size
