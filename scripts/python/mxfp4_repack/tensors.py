"""What the manifest says about a tensor, and the tensor as its kernel wants it."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

import numpy as np

from mxfp4_repack.errors import ArgumentError, DependencyError, FormatError

_MAX_SLACK_BYTES = 1 << 20
_MAX_DIMS = 8
_MAX_COUNT = 1 << 60  # elements of a tensor
_MAX_STRIDE = 1 << 63  # bytes
# Attributes that layouts set on tensors: the ones that a manifest may name.
FLAGS = ("is_shuffled",)

# safetensors name -> (numpy type of the same width, torch name). Types that numpy does not have
# come as integers of their width.
DTYPES: Dict[str, Tuple[str, str]] = {
    "U8": ("u1", "uint8"), "I8": ("i1", "int8"), "I32": ("<i4", "int32"),
    "F16": ("<f2", "float16"), "BF16": ("<u2", "bfloat16"), "F32": ("<f4", "float32"),
    "F8_E4M3": ("u1", "float8_e4m3fn"), "F8_E8M0": ("u1", "float8_e8m0fnu"),
}
# Others that a checkpoint's files hold, beside experts.
STORED_DTYPES: Dict[str, Tuple[str, str]] = {
    "BOOL": ("?", "bool"), "I16": ("<i2", "int16"), "U16": ("<u2", "uint16"), "U32": ("<u4", "uint32"),
    "F8_E5M2": ("u1", "float8_e5m2"), "F64": ("<f8", "float64"), "I64": ("<i8", "int64"), "U64": ("<u8", "uint64"),
}
_TORCH_BYTES = {
    "uint8": 1, "int8": 1, "float8_e4m3fn": 1, "float8_e8m0fnu": 1, "float4_e2m1fn_x2": 1, "int4": 1,
    "float16": 2, "bfloat16": 2, "int32": 4, "float32": 4,
}

_VIEW_BYTES = {**_TORCH_BYTES, **{torch: np.dtype(numpy).itemsize for numpy, torch in STORED_DTYPES.values()}}


@dataclass(frozen=True)
class TensorInfo:
    """What the manifest says about a tensor. Shapes and strides count elements of torch_dtype."""

    name: str  # without the layer's prefix: "w13_weight"
    full_name: str
    torch_dtype: str  # "uint8", "float8_e8m0fnu", ...
    shape: Tuple[int, ...]  # as the kernel sees it
    strides: Tuple[int, ...]
    file_dtype: str  # safetensors name
    file_shape: Tuple[int, ...]  # as in the file: the same bytes, row-major
    nbytes: int
    offset: int  # bytes from the start of the file's data
    xxh3_128: str
    slack_bytes: int  # readable bytes that a kernel touches past the end
    flags: Tuple[str, ...]  # attributes that the engine sets on the tensor: "is_shuffled"
    storage: Mapping[str, Any]  # the manifest's storage object: layout, layout_kwargs, ...


def row_major(shape: Sequence[int]) -> Tuple[int, ...]:
    strides, step = [], 1
    for dim in reversed(shape):
        strides.append(step)
        step *= max(dim, 1)
    return tuple(reversed(strides))


def tensor_info(file: str, tensor: Mapping[str, Any], prefix: str, offset: int) -> TensorInfo:
    """What an entry of a manifest's `tensors` says, whose members have the right types. Raises FormatError,
    which names `file`, for what numpy or torch could not hold."""
    full_name: str = tensor["name"]

    def refuse(key: str, what: str) -> FormatError:
        return FormatError(file, full_name, f"{key}: {what}")

    def sizes(key: str, values: Sequence[int]) -> Tuple[int, ...]:
        if len(values) > _MAX_DIMS or any(value < 0 for value in values):
            raise refuse(key, f"{list(values)}, expected at most {_MAX_DIMS} sizes")
        return tuple(values)

    def counted(key: str, values: Sequence[int]) -> int:
        # As if no size were 0: numpy multiplies the others all the same.
        if math.prod(max(value, 1) for value in values) >= _MAX_COUNT:
            raise refuse(key, f"{list(values)} is too large")
        return math.prod(values)

    file_dtype, storage = tensor["dtype"], tensor["storage"]
    if file_dtype not in DTYPES:
        raise refuse("dtype", f"{file_dtype} is not known")
    numpy_dtype, torch_dtype = DTYPES[file_dtype]
    itemsize = np.dtype(numpy_dtype).itemsize
    file_shape = sizes("shape", tensor["shape"])
    count = counted("shape", file_shape)
    torch_dtype = storage.get("torch_dtype", torch_dtype)
    if _TORCH_BYTES.get(torch_dtype) != itemsize:
        raise refuse("torch_dtype", f"{torch_dtype} cannot view {file_dtype}")
    shape, strides = file_shape, row_major(file_shape)
    if "storage_shape" in storage or "storage_strides" in storage:
        shape = sizes("storage_shape", storage.get("storage_shape", ()))
        strides = sizes("storage_strides", storage.get("storage_strides", ()))
        counted("storage_shape", shape)
        if any(step * itemsize >= _MAX_STRIDE for step in strides):
            raise refuse("storage_strides", f"{list(strides)} is too large")
        last = sum((dim - 1) * step for dim, step in zip(shape, strides))
        if len(shape) != len(strides) or (0 not in shape and last >= count):
            raise refuse("storage_strides", f"{list(shape)} by {list(strides)} does not lie in "
                                            f"{count} elements")
    slack = storage.get("slack_bytes", 0)
    if not 0 <= slack <= _MAX_SLACK_BYTES:
        raise refuse("slack_bytes", f"{slack}, at most {_MAX_SLACK_BYTES} are accepted")
    info = TensorInfo(
        name=full_name[len(prefix) + 1:], full_name=full_name, torch_dtype=torch_dtype,
        shape=shape, strides=strides, file_dtype=file_dtype, file_shape=file_shape,
        nbytes=count * itemsize, offset=offset, xxh3_128=tensor["xxh3_128"],
        slack_bytes=slack, flags=tuple(storage.get("flags", ())), storage=storage)
    _check_flags(info, file)
    return info


def _check_flags(info: TensorInfo, file: str) -> None:
    for flag in info.flags:
        if flag not in FLAGS:
            raise FormatError(file, info.full_name, f"flags: {flag!r}, no layout has it")


def numpy_type(info: TensorInfo, file: str) -> str:
    """numpy's type of a tensor in a file. Raises FormatError, naming `file`, where there is none."""
    found = {**DTYPES, **STORED_DTYPES}.get(info.file_dtype)
    if found is None:
        raise FormatError(file, info.full_name, f"dtype: numpy has no {info.file_dtype}")
    return found[0]


def import_torch(file: str) -> Any:
    """The package torch; DependencyError, naming `file`, if it is missing."""
    try:
        import torch
    except ImportError:
        raise DependencyError(file, "", "giving torch tensors needs the package torch") from None
    return torch


def torch_device(torch: Any, device: Any, file: str) -> Any:
    """torch.device(device); ArgumentError, naming `file`, if torch knows no such device."""
    try:
        return torch.device(device)
    except (RuntimeError, TypeError, ValueError) as error:
        what = str(error).split("\n", 1)[0]
        raise ArgumentError(file, "device", f"{device!r}: {what}") from None


def tensor_view(info: TensorInfo, flat: Any, file: str = "",
                shape: Optional[Sequence[int]] = None,
                strides: Optional[Sequence[int]] = None) -> Any:
    """The tensor as its kernel wants it, a view of `flat`: a torch uint8 tensor with the tensor's
    bytes, and perhaps more behind them. Raises FormatError for a type or flag that no layout has.

    The type is info.torch_dtype; shape and strides are info's unless both are given; info.flags are
    set as attributes. A torch without float4_e2m1fn_x2 gives uint8, as engines do; another missing
    type is a DependencyError that names `file`.
    """
    torch = import_torch(file)
    if info.torch_dtype not in _VIEW_BYTES:
        raise FormatError(file, info.full_name, f"torch_dtype: {info.torch_dtype!r}, no layout has it")
    _check_flags(info, file)
    dtype = getattr(torch, info.torch_dtype, None)
    if dtype is None and info.torch_dtype == "float4_e2m1fn_x2":
        dtype = torch.uint8
    if dtype is None:
        raise DependencyError(file, info.full_name,
                              f"torch {torch.__version__} has no {info.torch_dtype}")
    if shape is None or strides is None:
        shape, strides = info.shape, info.strides
    whole = flat.numel() - flat.numel() % _VIEW_BYTES[info.torch_dtype]
    tensor = flat[:whole].view(dtype).as_strided(shape, strides)
    for flag in info.flags:
        setattr(tensor, flag, True)
    return tensor
