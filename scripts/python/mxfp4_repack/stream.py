"""Tensors of a layer through memory that is smaller than they are: Layer.stream()."""
from __future__ import annotations

import itertools
from typing import Iterator, NamedTuple, Optional, Protocol, Sequence, Tuple

from mxfp4_repack.layer_file import Bytes, LayerFile

RUNS_IN_RING = 4  # at least: two that the caller holds, the next one, what is left at the ring's end


class Run(NamedTuple):
    """Bytes [begin, end) of a tensor, in the ring from byte `place` on."""

    tensor: int  # of those asked for
    begin: int
    end: int
    place: int


class Stream(Protocol):
    """Runs that are full, in the tensors' order. At most two are held while the next is asked for."""

    def next(self) -> Optional[Run]:
        """Waits for the next run; None at the end. Raises what reading raises."""

    def give_back(self) -> None:
        """Gives back the oldest run: its memory may be filled again."""

    def close(self) -> None:
        """Ends the stream: nothing writes to the ring any more."""


class PureStream:
    """Reads each run when it is asked for. `spans`: first data byte and bytes of each tensor."""

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
        """Nothing to do: runs take their places in turn, and there are more places than runs held."""

    def close(self) -> None:
        """Nothing to do: there are no threads."""
