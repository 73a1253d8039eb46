"""open_safetensors(): the tensors of a checkpoint's file as they are stored, for Loader.load()."""
from __future__ import annotations

import os
from typing import Dict

from mxfp4_repack.arguments import path_text
from mxfp4_repack.layer import Layer
from mxfp4_repack.native import NativeLayer, NativeSafetensors
from mxfp4_repack.tensors import DTYPES, STORED_DTYPES, TensorInfo, row_major

# safetensors name -> torch name
_TORCH: Dict[str, str] = {name: torch for name, (_, torch) in {**DTYPES, **STORED_DTYPES}.items()}


def open_safetensors(path: "os.PathLike[str] | str") -> Layer:
    """Opens one safetensors file as a layer without experts whose prefix is empty.

    Its `tensors` come in the order of their bytes. The torch_dtype of one whose type torch lacks is empty, and
    reading it as a tensor raises FormatError. Nothing is compared with a checksum, since there is none. Raises
    a BlobError that names the file: for its form, and in reads of a file that was cut short, made longer or
    replaced since.
    """
    file = path_text(path)
    native = NativeSafetensors(file)
    layer = NativeLayer(native, 0, file, [tensor.name for tensor in native.tensors],
                        [tensor.nbytes for tensor in native.tensors], False)
    infos = [TensorInfo(
        name=tensor.name, full_name=tensor.name, torch_dtype=_TORCH.get(tensor.dtype, ""), shape=tensor.shape,
        strides=row_major(tensor.shape), file_dtype=tensor.dtype, file_shape=tensor.shape, nbytes=tensor.nbytes,
        offset=tensor.offset, xxh3_128="", slack_bytes=0, flags=(), storage={}) for tensor in native.tensors]
    return Layer(layer, {"prefix": ""}, 0, infos)
