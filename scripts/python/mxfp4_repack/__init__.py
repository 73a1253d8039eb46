"""Reads the blobs that mxfp4-repack writes (man 5 mxfp4-repack-container, format version 1).

    import mxfp4_repack

    with mxfp4_repack.open_blob("packed/") as blob:
        with blob[0] as layer:                        # or by prefix: blob.layer("model.layers.0.mlp.experts")
            info = layer.info("w13_weight")          # dtype, shape, strides, layout parameters
            whole = layer["w13_weight"]              # the same as layer.numpy("w13_weight")
            one = layer.numpy("w13_weight", expert=5)  # decodes the frames of that expert only
            tensors = layer.to_device("cuda")        # torch tensors, see mxfp4_repack.loader

And runs the program: convert(), explain(), inspect(), verify(), fits(), diff(), unpack(), finalize() and list(),
see mxfp4_repack.commands; so does `python -m mxfp4_repack`.

Needs Python 3.9, numpy, and libmxfp4_repack.so.0, which every wheel holds; torch() and to_device() need
torch.

Sizes, shapes, offsets and strides from a file are checked before they are used, a read gives all
bytes or raises, and every tensor that is read whole is compared with the manifest. Every failure is a
BlobError whose text is `<file>: <tensor or key>: <what>`.

The names below are imported at their first use: vLLM imports this package in every process where it
is installed, and most processes do not use it.
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, List

if TYPE_CHECKING:
    from mxfp4_repack.blob import BLOB_FOLDER, MANIFEST_NAME, Blob, find_blobs, open_blob
    from mxfp4_repack.commands import Answer, convert, diff, explain, finalize, fits, inspect, unpack, verify
    from mxfp4_repack.commands import list_table as list
    from mxfp4_repack.errors import (
        ArgumentError, BlobError, ChecksumError, CommandError, DependencyError, FormatError, MismatchError,
        NotABlobError, NotFoundError, RankError, ReadError, SizeError)
    from mxfp4_repack.layer import Layer
    from mxfp4_repack.made import open_checkpoint
    from mxfp4_repack.stored import open_safetensors
    from mxfp4_repack.tensors import TensorInfo, tensor_view

__version__ = "0.2.0"

_HOMES = {
    **dict.fromkeys(("Answer", "convert", "diff", "explain", "finalize", "fits", "inspect", "unpack", "verify"), "commands"),
    **dict.fromkeys(("BLOB_FOLDER", "Blob", "MANIFEST_NAME", "find_blobs", "open_blob"), "blob"),
    **dict.fromkeys(("ArgumentError", "BlobError", "ChecksumError", "CommandError", "DependencyError", "FormatError",
                     "MismatchError", "NotABlobError", "NotFoundError", "RankError", "ReadError", "SizeError"), "errors"),
    "Layer": "layer", "open_checkpoint": "made", "open_safetensors": "stored",
    "TensorInfo": "tensors", "tensor_view": "tensors",
}
__all__ = sorted(_HOMES)  # noqa: PLE0605
# Not in __all__: `from mxfp4_repack import *` must not hide Python's own list.
_RENAMED = {"list": ("commands", "list_table")}


def __getattr__(name: str) -> Any:
    if name not in _HOMES and name not in _RENAMED:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    module, attribute = _RENAMED.get(name) or (_HOMES[name], name)
    try:
        home = importlib.import_module(f"{__name__}.{module}")
    except ModuleNotFoundError as error:
        from mxfp4_repack.errors import DependencyError
        raise DependencyError(__name__, name, f"needs the package {error.name}") from None
    value = getattr(home, attribute)
    if module == "commands" and name != "Answer":
        home.add_flags(value, name)  # for help()
    globals()[name] = value
    return value


def __dir__() -> List[str]:
    return sorted({*globals(), *__all__, *_RENAMED})
