"""JSON whose members are checked as they are read."""
from __future__ import annotations

import json
from typing import Any, Dict, Iterator, List, Tuple

from mxfp4_repack.errors import FormatError

MAX_DIMS = 8
_MAX_VALUES = 1 << 22


class Fields:
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
        if not 0 <= value < 1 << 63:
            raise FormatError(self.file, self.key(key), f"{value} is no size")
        return value

    def object(self, key: str) -> "Fields":
        return Fields(self.file, self.get(key, dict), self.key(key))

    def objects(self, key: str) -> Iterator["Fields"]:
        for i, item in enumerate(self.get(key, list)):
            yield Fields(self.file, item, f"{self.key(key)}[{i}]")

    def sizes(self, key: str) -> Tuple[int, ...]:
        values = self.get(key, list)
        if len(values) > MAX_DIMS or any(type(v) is not int or not 0 <= v < 1 << 62
                                          for v in values):
            raise FormatError(self.file, self.key(key), f"expected at most {MAX_DIMS} sizes")
        return tuple(values)


def parse_json(file: str, key: str, text: bytes) -> Any:
    def unique(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
        members = dict(pairs)
        if len(members) != len(pairs):
            raise ValueError("a key appears twice")
        return members

    # A value takes some hundred bytes of memory, so that a small text could demand a great deal.
    if text.count(b",") + text.count(b"[") + text.count(b"{") > _MAX_VALUES:
        raise FormatError(file, key, f"not JSON: more than {_MAX_VALUES} values")
    try:
        value = json.loads(text.decode("utf-8"), object_pairs_hook=unique)
        if b"\\ud" in text.lower():  # half of a surrogate pair cannot be encoded
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except (ValueError, RecursionError, MemoryError) as error:
        raise FormatError(file, key, f"not JSON: {error}") from None
