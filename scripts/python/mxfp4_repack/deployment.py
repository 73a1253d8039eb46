"""A deployment as the library takes it: the program's flags, as keywords, in one JSON object."""
from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Mapping

from mxfp4_repack.arguments import path_text
from mxfp4_repack.errors import ArgumentError

_LISTS, _PAIRS = ("libs", "no_lib"), ("env", "knob")
_FILES = ("target", "model_config", "quantization_config")  # whose JSON the library takes


def deployment_json(flags: Mapping[str, Any], rank: int) -> bytes:
    """flags: those of convert() that say what serves, in every form that it takes. Raises ArgumentError."""
    members: Dict[str, Any] = {"rank": rank}
    for name, value in flags.items():
        if value is None or value is False:
            continue
        members[name] = _member(name, value)
    try:
        return json.dumps(members).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentError("", "", f"no JSON: {error}") from None


def _member(name: str, value: Any) -> Any:
    if name in _LISTS:
        return [] if value == "none" else _items(name, value)
    if name in _PAIRS:
        return _pairs(name, value)
    if name in _FILES:
        return _object(name, value)
    if name == "layers":
        return _layers(value)
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _items(name: str, value: Any) -> List[str]:
    """"a, b==1", ["a", "b==1"] or {"b": "1"}."""
    if isinstance(value, Mapping):
        if None in value.values():
            raise ArgumentError("", name, "None, expected a value")
        value = [f"{key}=={version}" for key, version in value.items()]
    parts = value.split(",") if isinstance(value, str) else list(value)
    return [str(part).strip() for part in parts if str(part).strip()]


def _pairs(name: str, value: Any) -> Dict[str, str]:
    """{"A": 1}, "A=1" or ["A=1"]."""
    if isinstance(value, Mapping):
        return {str(key): str(int(item) if isinstance(item, bool) else item) for key, item in value.items()}
    found = {}
    for item in [value] if isinstance(value, str) else list(value):
        key, equals, text = str(item).partition("=")
        if not equals or not key:
            raise ArgumentError("", name, f"{item!r}, expected NAME=VALUE")
        found[key] = text
    return found


def _object(name: str, value: Any) -> Any:
    """The JSON of a file, or for quantization_config also the text itself."""
    try:
        if name == "quantization_config" and isinstance(value, str) and value.lstrip()[:1] in ("{", "n"):
            return json.loads(value)
        with open(path_text(value, name), encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        raise ArgumentError("", name, str(error)) from None


def _layers(value: Any) -> List[int]:
    """3, "0-3,7" or [0, 1]."""
    layers: List[int] = []
    for part in value.split(",") if isinstance(value, str) else [value] if isinstance(value, int) else list(value):
        first, dash, last = str(part).partition("-")
        try:
            layers += range(int(first), int(last if dash else first) + 1)
        except ValueError:
            raise ArgumentError("", "layers", f"{part!r}, expected N or FIRST-LAST") from None
    return layers
