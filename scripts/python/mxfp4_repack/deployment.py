"""A deployment as the library takes it: the program's flags, as keywords, in one JSON object."""
from __future__ import annotations

import json
import os
from typing import Any, Dict, Mapping

from mxfp4_repack.arguments import path_text
from mxfp4_repack.errors import ArgumentError

_PAIRS = ("env", "knob")


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
    """The library reads what a flag takes: "a,b==1", ["A=1"], "0-3,7", a file of --quantization-config."""
    if name in ("target", "model_config"):
        return _object(name, value)
    if isinstance(value, Mapping) and None in value.values():
        raise ArgumentError("", name, "None, expected a value")
    if name == "libs" and isinstance(value, Mapping):
        return [f"{key}=={version}" for key, version in value.items()]
    if name in _PAIRS and isinstance(value, Mapping):
        return {str(key): str(int(item) if isinstance(item, bool) else item) for key, item in value.items()}
    if name in _PAIRS and isinstance(value, str) or name == "layers" and isinstance(value, int):
        return [value]
    if isinstance(value, (set, frozenset, tuple, range)):
        return list(value)
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _object(name: str, value: Any) -> Any:
    """The JSON of a file."""
    try:
        with open(path_text(value, name), encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        raise ArgumentError("", name, str(error)) from None
