"""The facts that must agree between a manifest and the running engine before a byte is used.

An engine's package lists them, one in a row: its name, what the blob's manifest says, what the engine says.
Nothing here changes anything.
"""
from __future__ import annotations

import importlib.metadata
import json
import os
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Sequence, Tuple

from mxfp4_repack.plugin import engine
from mxfp4_repack.plugin.names import BLOCK

# layout -> {library: versions with whose code its bytes were executed}
with open(os.path.join(os.path.dirname(__file__), "tested.json"), encoding="utf-8") as _file:
    TESTED: Dict[str, Dict[str, List[str]]] = json.load(_file)

RAW_DTYPES = {None: "none", "BF16": "bfloat16", "F16": "float16", "F32": "float32"}
# Kernel library -> packages whose version tells the library's. triton_kernels has no version of its
# own in an engine: build compares the layout classes that it gives instead.
DISTRIBUTIONS = {"flashinfer": ("flashinfer-python", "flashinfer"), "AITER": ("amd-aiter", "aiter")}


class Mismatch(Exception):
    """The blob and the engine disagree on a fact, so that the engine converts the layer itself.

    Without `live`: `blob` says what is wrong with the blob.
    """

    def __init__(self, fact: str, blob: Any, live: Any = None, holder: str = "the blob") -> None:
        self.fact, self.blob, self.live = fact, blob, live
        super().__init__(f"{fact}: {blob}" if live is None else
                         f"{fact}: {holder} has {_text(blob)}, {engine.name()} has {_text(live)}")

    def of(self, holder: str) -> "Mismatch":
        """The same of something else than a blob."""
        return Mismatch(self.fact, self.blob, self.live, holder)


class OneOf(Tuple[Any, ...]):
    """Values of which any one will do."""


class Fact(NamedTuple):
    name: str
    blob: Callable[[Mapping[str, Any], Mapping[str, Any]], Any]  # (manifest, layer's entry)
    live: Callable[[Any, Mapping[str, Any]], Any]  # (the engine's Live, manifest)
    applies: Callable[[Mapping[str, Any], Any], bool] = lambda manifest, live: True


def compare(facts: Sequence[Fact], manifest: Mapping[str, Any], entry: Mapping[str, Any], live: Any) -> None:
    """Raises Mismatch for the first fact that differs or is unknown."""
    for fact in facts:
        if not fact.applies(manifest, live):
            continue
        want = fact.blob(manifest, entry)
        try:
            have = fact.live(live, manifest)
        except Exception as error:
            raise Mismatch(fact.name, want, f"unknown ({error})") from error
        if have not in want if isinstance(want, OneOf) else have != want:
            raise Mismatch(fact.name, want, have)


def recipe(manifest: Mapping[str, Any], entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the bytes of a layer, by its entry in the manifest, depend on."""
    found: Mapping[str, Any] = manifest["recipes"][entry["recipe"]]
    return found


def padded_shape(slot: str) -> Fact:
    """The shape of a raw tensor, which holds two padded sizes."""
    def blob(manifest: Mapping[str, Any], entry: Mapping[str, Any]) -> Tuple[int, ...]:
        made = recipe(manifest, entry)
        hidden, inner = made["padded_hidden_size"], made["padded_intermediate_size"]
        rows, columns = (2 * inner, hidden) if slot.startswith("w13") else (hidden, inner)
        return len(made["experts"]), rows, columns // (BLOCK if slot.endswith("scale") else 2)

    return Fact(f"padded shape of {slot}", blob, lambda v, m: v.shapes[slot])


def compare_library(manifest: Mapping[str, Any], pinned: Mapping[str, str]) -> None:
    """Raises Mismatch if the layout depends on a kernel library, and another version is here. pinned: the
    libraries' versions that the manifest's revision asks for."""
    name, _, version = manifest.get("kernel_library", "").partition(" ")
    if name not in DISTRIBUTIONS:
        return
    # A layout that did not change since names the version that it was written after.
    tested = TESTED.get(manifest["layout"], {}).get(name, [])
    versions = OneOf(dict.fromkeys([version, pinned.get(name, version), *tested]))
    for distribution in DISTRIBUTIONS[name]:
        try:
            found = importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            continue
        if found.partition("+")[0] not in versions:
            raise Mismatch(f"version of {name}", versions, found)
        return
    raise Mismatch(f"version of {name}", versions, "none that could be found")


def _text(value: Any) -> str:
    """Short, for one line: runs of numbers are joined."""
    if isinstance(value, OneOf):
        return ", ".join(str(v) for v in value[:-1]) + " or " * (len(value) > 1) + str(value[-1])
    if isinstance(value, (list, tuple)) and len(value) > 6 and all(
            isinstance(v, int) for v in value):
        runs: List[List[int]] = []
        for v in value:
            if runs and runs[-1][1] + 1 == v:
                runs[-1][1] = v
            else:
                runs.append([v, v])
        shown = ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs[:6])
        return f"[{shown}{', ...' if len(runs) > 6 else ''}]"
    return str(value)
