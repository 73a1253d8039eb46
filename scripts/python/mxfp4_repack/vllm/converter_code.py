"""Identifies the code of vLLM that converts weights here, and the releases that have the same.

revisions.json has what the plug-in needs of the program's revisions, name -> object:
  kernel_libraries  {library: version} that the revision asks for
  code              code() of the release, absent where it was not read
  generic_slice     "checkpoint": the generic loader gives each rank I / tp rows of the checkpoint,
                    "tensor": as many as its tensors have
Nothing here imports vLLM.
"""
from __future__ import annotations

import functools
import hashlib
import importlib.util
import inspect
import json
import os
import sys
from typing import Any, Dict, List, Sequence

from mxfp4_repack.plugin.live import fits_release
from mxfp4_repack.vllm.names import CONVERTERS, ORACLE

with open(os.path.join(os.path.dirname(__file__), "revisions.json"), encoding="utf-8") as _file:
    REVISIONS: Dict[str, Dict[str, Any]] = json.load(_file)

# The files whose code makes the bytes: converters, what they call, and classes that convert by themselves.
FILES = ("_aiter_ops.py", "utils/deep_gemm.py", *("model_executor/layers/" + name for name in (
    "fused_moe/oracle/mxfp4.py", "fused_moe/deep_gemm_mega_moe.py", "fused_moe/experts/cpu_moe.py", "fused_moe/experts/cutlass_moe.py",
    "quantization/compressed_tensors/compressed_tensors_moe/compressed_tensors_moe_w4a4_mxfp4.py",
    "quantization/inc/schemes/inc_mxfp4_moe.py", *("quantization/utils/" + name for name in (
        "flashinfer_utils.py", "fp8_utils.py", "humming/moe.py", "humming/schema.py", "humming_utils.py", "marlin_utils.py",
        "marlin_utils_fp4.py", "mxfp4_utils.py", "w8a8_utils.py")))))


def code(folders: Sequence[str]) -> str:
    """16 hex digits for FILES of the package in these folders."""
    digest = hashlib.sha256()
    for name in FILES:
        for folder in folders:
            try:
                with open(os.path.join(folder, name), "rb") as source:
                    digest.update(name.encode() + source.read())
            except FileNotFoundError:  # of another release
                pass
    return digest.hexdigest()[:16]


@functools.lru_cache(maxsize=None)
def installed_code() -> str:
    """code() of the installed vLLM, and of what another plug-in put in a converter's place."""
    spec = importlib.util.find_spec("vllm")
    found = [code(list(spec.submodule_search_locations or ()) if spec else [])]
    for name in CONVERTERS:
        converter = inspect.unwrap(getattr(sys.modules.get(ORACLE), name, len))
        if converter is not len and converter.__module__ != ORACLE:
            found.append(hashlib.sha256(inspect.getsource(converter).encode()).hexdigest()[:16])
    return "-".join(found)


def releases_with(fingerprint: str) -> List[str]:
    """The program's revisions whose code this is, the newest last."""
    return [name for name, revision in REVISIONS.items() if revision.get("code") == fingerprint]


def makes(fingerprint: str, blob: Any) -> bool:
    """Whether code of this fingerprint is known to make the blob's bytes: that of its revision, or of another
    release, for which the program makes the same."""
    releases, revision = releases_with(fingerprint), str(blob.manifest["revision"])
    if revision in releases or not releases:
        return bool(releases)
    return revision.startswith("vllm-") and fits_release(blob, releases[-1])
