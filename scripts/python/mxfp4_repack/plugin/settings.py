"""The plug-in's settings, from environment variables or the load format's options of these names."""
from __future__ import annotations

import os
from types import MappingProxyType
from typing import Mapping, NamedTuple, Optional

from mxfp4_repack.arguments import is_address
from mxfp4_repack.plugin.names import BLOB, CHECKPOINT, IN_THE_MODEL


class Settings(NamedTuple):
    """What the environment says; from_environment() raises ValueError for an invalid value."""

    blob: str  # a directory or an address, or IN_THE_MODEL
    verify: Optional[str] = None  # None: "none" for a known engine, "first" for another
    check: str = "sizes"
    strict: bool = False
    skip_raw: bool = False
    source: str = BLOB  # or CHECKPOINT, or EITHER: a blob if there is one that fits, else the checkpoint
    named: bool = True  # the user said where the blob is
    trust_source: bool = False
    direct: bool = False
    others: Optional[bool] = None  # whether tensors that are not experts come by the loader; None: on a GPU
    makes: str = ""  # cpu, gpu: who makes what is not in a blob; else the GPU if it can
    packed: bool = False  # the engine loads a model directory of convert --include-rest

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], source: str = BLOB,
                         options: Mapping[str, str] = MappingProxyType({})) -> Optional["Settings"]:
        """None: no blob is named. `source`: unless the environment says which. `options`: of variables whose
        values come from an option of the engine, its words."""
        blob = environment.get("MXFP4_REPACK_BLOB", "")
        if not blob:
            return None

        def choice(name: str, *values: str) -> Optional[str]:
            value = environment.get(name, "").strip().lower()
            if value and value not in values:
                raise ValueError(f"{options.get(name, name)} is {value!r}; it can be {', '.join(values)}")
            return value or None

        def switch(name: str) -> bool:
            return choice(name, "0", "1") == "1"

        others = choice("MXFP4_REPACK_OTHERS", "0", "1")

        said = choice("MXFP4_REPACK_SOURCE", BLOB, CHECKPOINT, "check", "trust")
        return cls(blob=blob if blob == IN_THE_MODEL or is_address(blob) else os.path.abspath(blob),
                   verify=choice("MXFP4_REPACK_VERIFY", "none", "first", "all"),
                   check=choice("MXFP4_REPACK_CHECK", "sizes", "checksums", "source", "none") or "sizes",
                   strict=switch("MXFP4_REPACK_STRICT"),
                   skip_raw=switch("MXFP4_REPACK_SKIP_RAW"),
                   source=said if said in (BLOB, CHECKPOINT) else source,
                   trust_source=said == "trust",
                   direct=switch("MXFP4_REPACK_DIRECT"),
                   makes=choice("MXFP4_REPACK_PASS", "cpu", "gpu") or "",
                   others=None if others is None else others == "1",
                   packed=switch("MXFP4_REPACK_PACKED"))
