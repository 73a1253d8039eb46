"""Tensors that are not experts, moved to the GPU by the loader that moves experts.

An engine's own iterator maps each file and copies tensor by tensor from pageable memory. This one reads the files
from front to back through the loader's pinned ring, and gives the engine tensors that are on the device already.
Raw experts that the engine converts itself stay with the engine's iterator, which reads only the rank's slices.
"""
from __future__ import annotations

import os
import re
import time
from typing import Any, Callable, Iterable, Iterator, List, Sequence, Set, Tuple

from mxfp4_repack.errors import BlobError
from mxfp4_repack.plugin import checkpoint, engine
from mxfp4_repack.plugin.engine import log
from mxfp4_repack.stored import open_safetensors

# Of one load: the engine holds these beside its own tensors until it has copied them.
_BATCH_BYTES = 128 << 20

Weights = Iterator[Tuple[str, Any]]


def weights(files: Sequence[str], device: Any, unwanted: Callable[[str], bool],
            rest: Callable[[List[str], Callable[[str], bool]], Iterable[Tuple[str, Any]]]) -> Weights:
    """(name, tensor) of all tensors of `files` but those that are `unwanted`.

    device: a GPU. rest: gives what this leaves: of files, and of names that its second argument does not refuse.
    Raises BlobError for a file that changes while it is read.
    """
    left: List[str] = []
    given: Set[str] = set()
    size, spent = 0, 0.0
    for file in sorted(files, key=_natural):
        try:
            layer = open_safetensors(file)
        except BlobError as error:
            log.warning("mxfp4-repack: %s reads this file: %s", engine.name(), error)
            left.append(file)
            continue
        with layer:
            wanted = [name for name in layer.tensors if not unwanted(name)]
            mine = [name for name in wanted if _is_mine(name, layer.info(name).torch_dtype)]
            if len(mine) < len(wanted):
                left.append(file)
            for names in _batches(layer, mine):
                begin = time.monotonic()
                tensors = layer.to_device(device, names)
                spent += time.monotonic() - begin
                size += sum(layer.info(name).nbytes for name in names)
                for name in names:
                    given.add(name)
                    yield name, tensors.pop(name)
    log.info("mxfp4-repack: %d other tensors, %.2f GB, read in %.2f s", len(given), size / 1e9, spent)
    if left:
        yield from rest(left, lambda name: name in given or unwanted(name))


def _is_mine(name: str, torch_dtype: str) -> bool:
    import torch
    raw = checkpoint.is_raw_name(name.rpartition(".experts.")[2])
    return not raw and bool(torch_dtype) and hasattr(torch, torch_dtype)


def _batches(layer: Any, names: Sequence[str]) -> Iterator[List[str]]:
    batch: List[str] = []
    size = 0
    for name in names:
        nbytes = layer.info(name).nbytes
        if batch and size + nbytes > _BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(name)
        size += nbytes
    if batch:
        yield batch


def _natural(file: str) -> List[Any]:
    """x-2 before x-10, as engines order files."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", os.path.basename(file))]
