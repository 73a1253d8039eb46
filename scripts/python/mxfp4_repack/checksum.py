"""XXH3-128, the checksum of the manifest, of files and of tensors."""
from __future__ import annotations

from typing import Any

import xxhash


def new_checksum() -> Any:
    """A running checksum: update(buffer), hexdigest()."""
    return xxhash.xxh3_128()


def xxh3_128(data: Any) -> str:
    """The checksum of a contiguous buffer: 32 hexadecimal digits, high half first."""
    return xxhash.xxh3_128(data).hexdigest()
