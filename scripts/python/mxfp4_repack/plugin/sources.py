"""Decides where a layer's converted weights come from: a blob, or the checkpoint that the engine loads.

Both are a Blob with a manifest and layers, and every fact of both is compared with the running engine
before a byte is used. A blob's manifest was written by `convert`. The manifest of a checkpoint is what
the rules make of what the running engine says of the layer: backend, sizes, ranks, placement.
"""
from __future__ import annotations

import json
from typing import Any, Dict, Iterator, List, Mapping, Optional, Set, Tuple

from mxfp4_repack import BlobError, CommandError, NotABlobError, find_blobs, open_checkpoint
from mxfp4_repack.arguments import is_address
from mxfp4_repack.blob import open_any_blob
from mxfp4_repack.plugin import checkpoint, proofs
from mxfp4_repack.plugin.engine import log
from mxfp4_repack.plugin.facts import Mismatch
from mxfp4_repack.plugin.live import Live, Origin
from mxfp4_repack.plugin.names import BLOB, CHECKPOINT, IN_THE_MODEL


class Sources:
    """The blobs and checkpoints of a process that are open, and which layer took what."""

    def __init__(self, settings: Any, facts: Any) -> None:
        """facts: the engine's module. compare(manifest, entry, live) and compare_revision(blob, live) raise
        Mismatch: for a fact that differs, and for code that is not known to make the bytes. flags(live) are
        those of open_checkpoint() for the rank that holds the layer."""
        self.settings = settings
        self._facts = facts
        self._opened: Dict[Tuple[str, ...], Any] = {}  # Blob, or why it cannot be opened
        self._owners: Dict[Tuple[str, str], str] = {}  # (root, layer there) -> layer of the engine
        self._compared_sources: Dict[Tuple[str, Origin], Optional[Tuple[Any, ...]]] = {}  # why not, if not
        self._refuted: Dict[str, str] = {}  # root -> why it is not used any more
        self._said: Set[str] = set()

    def agree(self, live: Live) -> Tuple[Any, Mapping[str, Any]]:
        """The first source of which every fact agrees, and its entry for the layer. Raises Mismatch, which
        names the last source's first fact that does not."""
        if live.origin is None:
            raise Mismatch("configuration", "its own", "none that is current")
        live.check_backend()
        kinds = list(self._kinds(live))
        for kind in kinds[:-1]:
            try:
                return self._agree(kind, live)
            except Mismatch as mismatch:
                if str(mismatch) not in self._said:
                    self._said.add(str(mismatch))
                    log.warning("mxfp4-repack: %s: the blob does not fit, so that the weights are made from the "
                                "checkpoint: %s", live.layer.layer_name, mismatch)
        return self._agree(kinds[-1], live)

    def _kinds(self, live: Live) -> Iterator[str]:
        """The sources to try, in order."""
        if self.settings.source in (BLOB, CHECKPOINT):
            yield self.settings.source
            return
        packed = checkpoint.lacks_raw_experts(checkpoint.model_directory(live.origin))
        if self.settings.named or packed or _is_blob(self.settings.blob):
            yield BLOB
        if not packed:
            yield CHECKPOINT

    def _agree(self, kind: str, live: Live) -> Tuple[Any, Mapping[str, Any]]:
        if kind == CHECKPOINT:
            try:
                return self._compared(self._made(live), live, False)
            except Mismatch as mismatch:
                raise mismatch.of("the conversion") from None
        blob, entry = self._compared(self._blob(live), live, not self.settings.trust_source)
        return (self._remade(blob, live) if self.settings.check == "source" else blob), entry

    def _compared(self, blob: Any, live: Live, compare_source: bool) -> Tuple[Any, Mapping[str, Any]]:
        if blob.root in self._refuted:
            raise Mismatch("earlier layer", self._refuted[blob.root], "another result")
        entry = checkpoint.find_layer(blob.manifest["layers"], live.layer.layer_name)
        name, place = live.layer.layer_name, (blob.root, entry["prefix"])
        owner = self._owners.get(place)
        if owner not in (None, name):  # of another model in this process, with equal names inside
            raise Mismatch("layer", f"{entry['prefix']}, which {owner} took", name)
        self._facts.compare(blob.manifest, entry, live)
        if self.verify_mode(live, blob) == "none" and not _known(live, blob):
            self._facts.compare_revision(blob, live)
        if compare_source:
            self._compare_source(blob, live.origin)
        self._owners[place] = name
        return blob, entry

    def _compare_source(self, blob: Any, origin: Origin) -> None:
        """checkpoint.compare_source(), once for all layers of a load."""
        key = blob.root, origin
        if key not in self._compared_sources:
            try:
                checkpoint.compare_source(blob.manifest, blob.root, origin)
                self._compared_sources[key] = None
            except Mismatch as mismatch:  # the exception would keep its frames' tensors alive
                self._compared_sources[key] = mismatch.fact, mismatch.blob, mismatch.live
        why = self._compared_sources[key]
        if why is not None:
            raise Mismatch(*why)

    def verify_mode(self, live: Live, blob: Any) -> str:
        """none, first or all: by default code that is not known to make the blob's bytes has to prove
        once that it does."""
        if self.settings.verify is not None:
            return str(self.settings.verify)
        return "none" if _known(live, blob) else "first"

    def refute(self, root: str, why: str) -> None:
        """The engine makes other bytes: `root` is not used any more."""
        self._refuted[root] = why

    def roots(self, kind: str) -> List[str]:
        """Where sources of this kind were looked for."""
        return list(dict.fromkeys(key[1] for key in self._opened if key[0] == kind))

    def close(self) -> None:
        """Closes what is open: the model is loaded, or will not be."""
        for blob in self._opened.values():
            if not isinstance(blob, str):
                blob.close()
        self._opened.clear()
        self.forget_comparisons()

    def forget_comparisons(self) -> None:
        """A model is loaded. The checkpoint's files may be others at the next load."""
        self._compared_sources.clear()

    # --- opening, each once ---

    @property
    def _check(self) -> str:
        """What open_any_blob() looks at: "source" reads the checkpoint in the blob's place."""
        return "sizes" if self.settings.check == "source" else str(self.settings.check)

    def _blob(self, live: Live) -> Any:
        """The blob of the layer's rank. Raises Mismatch."""
        rank, ranks = live.rank
        directory = self._directory(live)
        if is_address(directory) and ranks > 1:  # a server need not list what is there
            directory = f"{directory.rstrip('/')}/rank-{rank:02}-of-{ranks:02}"
        blob = self._once(
            (BLOB, directory, str(rank)), f"rank {rank} of {ranks}",
            lambda: open_any_blob(directory, rank, self._check, self.settings.direct))
        if not self.settings.named:
            checkpoint.refuse_foreign(directory, blob.root, live.origin)
        return blob

    def _directory(self, live: Live) -> str:
        """Where the blob is. Raises Mismatch."""
        if self.settings.blob != IN_THE_MODEL:
            return str(self.settings.blob)
        directory = checkpoint.model_directory(live.origin)
        if directory is None:
            raise Mismatch("checkpoint", "a model directory here", live.origin.model)
        return directory

    def _made(self, live: Live) -> Any:
        """The layers of the layer's rank, made from the checkpoint. Raises Mismatch."""
        directory = checkpoint.model_directory(live.origin)
        if directory is None:
            raise Mismatch("checkpoint", "a directory here", live.origin.model)
        flags = self._facts.flags(live)
        return self._once((CHECKPOINT, directory, json.dumps(flags, sort_keys=True)), "checkpoint",
                          lambda: open_checkpoint(directory, **flags))

    def _remade(self, blob: Any, live: Live) -> Any:
        """The blob's layers, made from the checkpoint and compared with the blob's checksums. Raises Mismatch."""
        directory = checkpoint.model_directory(live.origin)
        made = self._once((CHECKPOINT, str(directory), blob.digest), "checkpoint",
                          lambda: open_checkpoint(str(directory), conversion=blob.manifest))
        made.of = blob
        return made

    def _once(self, key: Tuple[str, ...], fact: str, opening: Any) -> Any:
        if key not in self._opened:
            try:
                self._opened[key] = opening()
            except (BlobError, CommandError, OSError) as error:
                self._opened[key] = str(error)  # the exception would keep its frames' tensors alive
        found = self._opened[key]
        if isinstance(found, str):
            raise Mismatch(fact, found)
        return found


def _is_blob(directory: str) -> bool:
    try:
        return bool(find_blobs(directory))
    except NotABlobError:
        return False
    except BlobError:  # a damaged one
        return True


def _known(live: Live, blob: Any) -> bool:
    return live.makes(getattr(blob, "of", blob)) or proofs.proven(live, blob.digest)
