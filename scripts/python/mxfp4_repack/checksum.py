"""XXH3-128, the checksum of the manifest, of files and of tensors."""
from __future__ import annotations

from typing import Any

from mxfp4_repack.errors import DependencyError


def new_checksum() -> Any:
    """A running checksum: update(buffer), hexdigest(). Raises DependencyError."""
    try:
        import xxhash
    except ImportError:
        raise DependencyError("", "", "checksums need the package xxhash") from None
    return xxhash.xxh3_128()


def xxh3_128(data: Any) -> str:
    """The checksum of a contiguous buffer: 32 hexadecimal digits, high half first."""
    checksum = new_checksum()
    checksum.update(data)
    return str(checksum.hexdigest())
