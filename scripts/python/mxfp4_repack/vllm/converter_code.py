"""Identifies the code of vLLM that converts weights here, and whether it makes a revision's bytes.

A fingerprint identifies code: revisions.json has those of the program's revisions,
fingerprints.json those of every release. Nothing here imports vLLM.
"""
from __future__ import annotations

import functools
import hashlib
import inspect
import json
import os
from typing import Any, Dict, Sequence

# What the plug-in needs of the program's revisions, name -> object:
#   kernel_libraries  {library: version} that the revision asks for
#   converters        first 16 digits of SHA-256 over the source of both converters and of
#                     _swizzle_mxfp4, absent where they were not read
#   generic_slice     "checkpoint": the generic loader gives each rank I / tp rows of the
#                     checkpoint, "tensor": as many as its tensors have
with open(os.path.join(os.path.dirname(__file__), "revisions.json"), encoding="utf-8") as _file:
    REVISIONS: Dict[str, Dict[str, Any]] = json.load(_file)
FINGERPRINTS = {revision["converters"]: name for name, revision in REVISIONS.items()
                if "converters" in revision}
# The converters' fingerprint in every release, and the fingerprints of the branches that run for one backend:
#   converters {fingerprint: [release]}, gpt_oss and generic {backend: {fingerprint: [release]}}
with open(os.path.join(os.path.dirname(__file__), "fingerprints.json"), encoding="utf-8") as _file:
    RELEASES: Dict[str, Any] = json.load(_file)


def fingerprint(functions: Sequence[Any]) -> str:
    """The fingerprint of functions: the two converters and _swizzle_mxfp4, in this order."""
    text = "".join(inspect.getsource(inspect.unwrap(function)) for function in functions)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


_fingerprints: Dict[str, str] = {}


def oracle_fingerprint(oracle: Any) -> str:
    """The fingerprint of a module's converters, which may be wrapped already."""
    key = f"{oracle.__name__} {getattr(oracle, '__file__', '')}"
    if key not in _fingerprints:
        try:
            _fingerprints[key] = fingerprint([
                oracle.convert_gpt_oss_weight_to_mxfp4_moe_kernel_format,
                oracle.convert_weight_to_mxfp4_moe_kernel_format, oracle._swizzle_mxfp4])
        except (AttributeError, OSError, TypeError):  # another function, or no source
            with open(oracle.__file__, "rb") as source:
                _fingerprints[key] = hashlib.sha256(source.read()).hexdigest()[:16]
    return _fingerprints[key]


@functools.lru_cache(maxsize=None)
def installed_branch(code: str, backend: str) -> str:
    """The branch fingerprint of the installed vLLM's converter of a family, or of a method class that
    converts by itself; empty if its source allows none."""
    from mxfp4_repack.vllm import fingerprint as branches
    try:
        return branches.branch_fingerprint(branches.Sources(), code, backend)
    except (OSError, LookupError, SyntaxError, ValueError, AttributeError):
        return ""


def makes_bytes_of(revision: str, converters: str, code: str, backend: str) -> bool:
    """Whether the code with the fingerprint `converters` is known to make the revision's bytes.

    It is if both converters are the revision's, or at least all code that runs for this backend. `code`: a
    family, or a method class that converts by itself, whose fingerprint `converters` is then.
    """
    release = revision.replace("vllm-", "", 1)
    if FINGERPRINTS.get(converters) == revision:
        return True
    if release in RELEASES["converters"].get(converters, ()):
        return True
    branches = RELEASES.get(code, {}).get(backend, {})
    return release in branches.get(installed_branch(code, backend), ())
