"""open_checkpoint(): the layers that a blob would have, made from a checkpoint whenever they are read."""
from __future__ import annotations

import functools
import json
import os
from typing import Any, Mapping, Optional

from mxfp4_repack.arguments import path_text, whole_number
from mxfp4_repack.blob import Blob
from mxfp4_repack.deployment import deployment_json
from mxfp4_repack.errors import ArgumentError, NotFoundError, RankError
from mxfp4_repack.native import NativeCheckpoint


class MadeBlob(Blob):
    """One rank's layers of a checkpoint. root: the checkpoint; manifest: as convert(compress="none") would
    write it, but for checksums and sizes of files."""

    def file_of(self, prefix: str) -> str:
        """The checkpoint, in place of a layer's file. Raises NotFoundError."""
        super().file_of(prefix)
        return self.root

    def check_size(self, prefix: str) -> None:
        self.file_of(prefix)

    def verify(self) -> None:
        raise ArgumentError(self.root, "", "is made from a checkpoint: there is no file to verify")

    def __repr__(self) -> str:
        return (f"<layers of {self.root!r}: {self.manifest['layout']}, {len(self.layers)} layers, rank "
                f"{self.rank} of {self.ranks}>")


def open_checkpoint(path: "os.PathLike[str] | str", *, rank: Optional[int] = None,
                    conversion: Optional[Mapping[str, Any]] = None, **flags: Any) -> Blob:
    """Opens a safetensors checkpoint as open_blob() opens a blob that was made from it: the same names,
    types, shapes, strides and bytes, which are made each time that they are read. Nothing is written.

    rank: may be left out if there is one. flags: those of convert() that say what serves (arch, tp_size,
    backend, ...) and which layers; the library decides, as explain() does. conversion: in place of flags, one
    rank's manifest, such as that of a blob; its checksums are then compared with what is made. Raises
    CommandError if convert() would refuse, and a BlobError where the checkpoint cannot be read or is not
    that of `conversion`. A file of the checkpoint that changes while it is read is a BlobError, too.
    """
    root = path_text(path)
    asked = 0 if rank is None else whole_number(rank, root, "rank")
    if conversion is None:
        opened = NativeCheckpoint(root, deployment=deployment_json(flags, asked))
    else:
        given = [name for name, value in flags.items() if value is not None and value is not False]
        if given:
            raise ArgumentError(root, "conversion", f"says it all: {', '.join(given)} cannot be given beside it")
        opened = NativeCheckpoint(root, conversion=_json_of(conversion, root))
    blob = MadeBlob(root, opened, "none")
    blob.reopen = functools.partial(open_checkpoint, os.path.abspath(root), rank=rank, conversion=conversion, **flags)
    if rank is None and blob.ranks > 1:
        raise RankError(root, "", f"{blob.ranks} ranks serve it; say which one this is")
    if rank is not None and blob.rank != asked:
        raise RankError(root, "rank", f"the conversion is of rank {blob.rank} of {blob.ranks}, not {asked}")
    return blob


def _json_of(conversion: Any, root: str) -> bytes:
    if not isinstance(conversion, Mapping):
        raise ArgumentError(root, "conversion", f"of type {type(conversion).__name__}, expected a manifest's object")
    try:
        return json.dumps(dict(conversion)).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentError(root, "conversion", f"is not JSON: {error}") from None
