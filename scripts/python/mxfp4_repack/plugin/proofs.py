"""Remembers, from one start to the next, which code of an engine was seen to make a blob's bytes.

Each proof is a file in the user's cache directory, named by a hash of what was compared: the code
that converts, the engine's version, the manifest, and the kind of layer. Proofs are not kept beside
the blob, whose author may be somebody else.
"""
from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
from typing import Any, Dict

from mxfp4_repack.plugin import engine
from mxfp4_repack.plugin.engine import log
from mxfp4_repack.plugin.live import Live


def proven(live: Live, digest: str) -> bool:
    """Whether remember() was called with these facts, by this user. `digest`: the manifest's."""
    try:
        found = os.lstat(_path(_facts(live, digest)))
    except OSError:  # of _path(), too
        return False
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()


def remember(live: Live, digest: str) -> None:
    """Writes the proof. A failure to write is no error: the next start compares again."""
    facts = _facts(live, digest)
    try:
        path = _path(facts)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(path, "x", encoding="utf-8") as file:
            json.dump(facts, file, indent=1)
    except FileExistsError:
        pass
    except OSError as error:
        log.info("mxfp4-repack: the comparison is not remembered: %s", error)


def _facts(live: Live, digest: str) -> Dict[str, Any]:
    return {"converters": live.fingerprint, "kind": [str(part) for part in live.kind],
            "manifest_sha256": digest,
            engine.package(): str(getattr(sys.modules.get(engine.package()), "__version__", "unknown"))}


def _path(facts: Dict[str, Any]) -> str:
    """Raises FileNotFoundError for a user without a home directory, as containers have them."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    if not os.path.isabs(cache):  # it would be another place in each directory
        raise FileNotFoundError(f"{cache}: not an absolute path")
    name = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    return os.path.join(cache, "mxfp4_repack", "proven", name)
