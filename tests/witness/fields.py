"""JSON whose members are checked as they are read, and the one error of the witness."""
from __future__ import annotations

import json
import os
import stat
from typing import Any, Dict, Iterator, List, Tuple

_MAX_VALUES = 1 << 22


class Refused(Exception):
    """A blob is not what it should be: `<file>: <tensor or key>: <what>`."""

    def __init__(self, file: str, key: str, what: str) -> None:
        super().__init__(": ".join(part for part in (file, key, what) if part))


def read_file(path: str) -> bytes:
    """A regular file, whole. Never waits for a FIFO."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise Refused(path, "", "is not a regular file")
            return file.read()
    except OSError as error:
        raise Refused(path, "", error.strerror or str(error)) from None


class Fields:
    """A JSON object of `file` at `path`; getters raise Refused unless the type is right."""

    def __init__(self, file: str, value: Any, path: str = "") -> None:
        if not isinstance(value, dict):
            raise Refused(file, path, "expected a JSON object")
        self.file, self.value, self.path = file, value, path

    def key(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def get(self, key: str, kind: type) -> Any:
        value = self.value.get(key)
        if type(value) is not kind:  # a bool is not an integer here
            found = "nothing" if key not in self.value else type(value).__name__
            raise Refused(self.file, self.key(key), f"expected {kind.__name__}, found {found}")
        return value

    def size(self, key: str) -> int:
        value: int = self.get(key, int)
        if not 0 <= value < 1 << 63:
            raise Refused(self.file, self.key(key), f"{value} is not a size")
        return value

    def object(self, key: str) -> "Fields":
        return Fields(self.file, self.get(key, dict), self.key(key))

    def objects(self, key: str) -> Iterator["Fields"]:
        for i, item in enumerate(self.get(key, list)):
            yield Fields(self.file, item, f"{self.key(key)}[{i}]")


def parse_json(file: str, key: str, text: bytes) -> Any:
    def unique(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
        members = dict(pairs)
        if len(members) != len(pairs):
            raise ValueError("a key appears twice")
        return members

    # A value takes some hundred bytes of memory, so that a small text could demand a great deal.
    if text.count(b",") + text.count(b"[") + text.count(b"{") > _MAX_VALUES:
        raise Refused(file, key, f"not JSON: more than {_MAX_VALUES} values")
    def whole(digits: str) -> int:
        if digits.startswith("-"):
            raise ValueError("a negative number")
        return int(digits)

    try:
        value = json.loads(text.decode("utf-8"), object_pairs_hook=unique, parse_int=whole)
        if b"\\ud" in text.lower():  # half of a surrogate pair cannot be encoded
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except (ValueError, RecursionError, MemoryError) as error:
        raise Refused(file, key, f"not JSON: {error}") from None
