"""An independent reader of blobs (man 5 mxfp4-repack-container), which judges what the tests write.

    witness.judge("packed/")          raises witness.Refused, which says what is wrong
    python3 tests/witness PATH...     the same for every blob at PATH; exit 1 and one line if one is wrong

It shares no code with the program, the library or the Python package, and knows no layout: names, types,
shapes and storage of tensors are compared with the layer's file, not with what a layout makes. Of a
blob it reads every byte: the manifest's form and seal, each layer file's size, checksum, header and seek
table, each frame, each tensor's checksum, and the index. Needs Debian's python3-xxhash and
python3-zstandard.
"""
from __future__ import annotations

import os
from typing import List

from witness.fields import Refused
from witness.index import check_index
from witness.layer import check_layer
from witness.manifest import MANIFEST_NAME, read_manifest

__all__ = ["Refused", "blobs_at", "judge"]


def blobs_at(path: str) -> List[str]:
    """Every directory at or below `path` that holds a manifest."""
    return sorted(directory for directory, _, files in os.walk(path) if MANIFEST_NAME in files)


def judge(directory: str) -> None:
    """Raises Refused unless the blob of one rank in `directory` is whole and as its manifest says."""
    manifest = read_manifest(os.path.join(directory, MANIFEST_NAME))
    for entry in manifest["layers"]:
        check_layer(os.path.join(directory, entry["file"]), manifest, entry)
    check_index(directory, manifest)
