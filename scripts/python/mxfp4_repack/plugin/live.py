"""One layer as the running engine has it: what the engines' own classes have in common. Changes nothing."""
from __future__ import annotations

import functools
from typing import Any, Mapping, NamedTuple, Optional, Sequence, Tuple

from mxfp4_repack.errors import BlobError, CommandError


class Origin(NamedTuple):
    """What the engine's configuration says about the origin of a layer's weights."""

    model: str = ""
    revision: Optional[str] = None
    download_dir: Optional[str] = None
    load_format: str = "unknown"
    refusals: Tuple[str, ...] = ()  # why raw weights must be loaded in any case


class Live:
    """A layer before its conversion, or even before its weights are loaded."""

    rank: Tuple[int, int]  # (rank, ranks) of the blob's directories: of TP or of EP, whichever splits the layer

    def __init__(self, layer: Any, *, method: Any, family: str, backend: str,
                 shapes: Mapping[str, Sequence[int]], biases: Mapping[str, Optional[str]],
                 fingerprint: str, origin: Optional[Origin]) -> None:
        """shapes: of the raw tensors, and biases: torch's names of types, both by slot. fingerprint: of the code
        that converts."""
        self.layer, self.family, self.backend = layer, family, backend
        self.method, self._method = type(method).__name__, method
        self.shapes = {name: tuple(int(n) for n in shape) for name, shape in shapes.items()}
        self.biases, self.fingerprint, self.origin = biases, fingerprint, origin

    def makes(self, blob: Any) -> bool:
        """Whether this engine's code is known to make the blob's bytes."""
        raise NotImplementedError

    def check_backend(self) -> None:
        """Raises Mismatch if the plug-in does not take weights for this backend."""
        raise NotImplementedError

    @property
    def kind(self) -> Tuple[Any, ...]:
        """Layers of equal kind are converted alike: one comparison proves all of them."""
        return self.backend, self.family, tuple(sorted(self.shapes.items())), tuple(
            sorted(self.biases.items()))

    @property
    def load_format(self) -> str:
        return "unknown" if self.origin is None else self.origin.load_format

    @property
    def padded_sizes(self) -> Tuple[int, int]:
        """Hidden and intermediate size of the raw tensors here."""
        _, rows, columns = self.shapes["w13_weight"]
        return columns * 2, rows // 2


def kind_of_arch(arch: str) -> str:
    """x86_64 for each of mxfp4-repack's names of it: its extensions decide whether an engine chooses the
    CPU backend, but change no byte."""
    return "x86_64" if arch.startswith("x86_") or arch == "amd64" else arch


def dtype_name(dtype: Any) -> str:
    return str(dtype).rsplit(".", 1)[-1]


@functools.lru_cache(maxsize=None)
def fits_release(blob: Any, release: str) -> bool:
    """Whether the program says that another release than the blob's own makes the same bytes."""
    from mxfp4_repack.commands import fits
    from mxfp4_repack.made import MadeBlob
    try:
        return not isinstance(blob, MadeBlob) and fits(blob.root, revision=release).fits is True
    except (BlobError, CommandError):  # the program is not here, or refuses
        return False
