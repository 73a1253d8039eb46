"""Reads tensors of a layer through a ring of memory smaller than they are: Layer.stream()."""
from __future__ import annotations

import itertools
from typing import Iterator, NamedTuple, Optional, Protocol, Sequence, Tuple

from mxfp4_repack.layer_file import Bytes, LayerFile

RUNS_IN_RING = 4  # or more: two that the caller holds, the next, space left at the ring's end


class Run(NamedTuple):
    """Bytes [begin, end) of a tensor, in the ring from byte `place` on."""

    tensor: int  # index into those asked for
    begin: int
    end: int
    place: int


class Stream(Protocol):
    """Gives full runs in the tensors' order. The caller may hold two while it asks for the next."""

    def next(self) -> Optional[Run]:
        """Waits for the next run; None at the end. Raises what reading raises."""

    def give_back(self) -> None:
        """Gives back the oldest run that the caller holds: its memory may be filled again."""

    def close(self) -> None:
        """Ends the stream: once this returned, nothing writes to the ring."""


class PureStream:
    """Reads each run when next() asks for it. `spans`: first data byte and bytes of each tensor."""

    def __init__(self, file: LayerFile, spans: Sequence[Tuple[int, int]], ring: Bytes,
                 run_bytes: int) -> None:
        self._runs = self._read(file, spans, ring, run_bytes)

    @staticmethod
    def _read(file: LayerFile, spans: Sequence[Tuple[int, int]], ring: Bytes,
              run_bytes: int) -> Iterator[Run]:
        places = itertools.cycle(range(0, ring.size - run_bytes + 1, run_bytes))
        for tensor, (start, size) in enumerate(spans):
            for begin, end in file.cuts(start, start + size, run_bytes):
                place = next(places)
                file.read_into(begin, ring[place:place + end - begin])
                yield Run(tensor, begin - start, end - start, place)

    def next(self) -> Optional[Run]:
        return next(self._runs, None)

    def give_back(self) -> None:
        """Nothing to do: places are used in turn, and there are more than a caller may hold."""

    def close(self) -> None:
        """Nothing to do: there are no threads."""
