"""Arguments of this package's functions, checked before anything is done with them."""
from __future__ import annotations

import operator
import os
import re
from typing import Any

from mxfp4_repack.errors import ArgumentError


def whole_number(value: Any, file: str, key: str) -> int:
    """`value` as an int; ArgumentError, naming `file` and `key`, unless it is a whole number."""
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise ArgumentError(file, key, f"{value!r}, expected a whole number") from None


def path_text(path: Any, key: str = "path") -> str:
    """A path as text. ArgumentError, naming `key`, unless the system can have such a path: an empty one would be
    the current directory, and one with a null character what stands before it."""
    try:
        text = str.__str__(os.fsdecode(path))
    except TypeError:
        raise ArgumentError("", key, f"{path!r}, expected a path") from None
    if not text:
        raise ArgumentError("", key, "the path is empty")
    return word(text, key, "a path")


def is_address(path: str) -> bool:
    """Whether a path is of another machine; then it names one rank's directory, and the library reads it."""
    return re.match("[a-z0-9+]+://", path) is not None


def word(text: str, key: str, kind: str = "a flag's value") -> str:
    """`text`; ArgumentError, naming `key`, unless a program can be given it."""
    if "\0" in text:
        raise ArgumentError("", key, f"{text!r}, {kind} has no null character")
    try:
        os.fsencode(text)
    except UnicodeEncodeError as error:
        raise ArgumentError("", key, f"{text!r}, {kind} has no character {text[error.start]!r}") from None
    return text
