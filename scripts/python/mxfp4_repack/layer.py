"""One layer of a blob: its tensors, compared with the manifest."""
from __future__ import annotations

import math
from types import TracebackType
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Type

import numpy as np
from numpy.typing import NDArray

from mxfp4_repack.arguments import whole_number
from mxfp4_repack.errors import ArgumentError, NotFoundError, ReadError, SizeError
from mxfp4_repack.native import Bytes, NativeLayer
from mxfp4_repack.native_gpu import NativeGpu, can_make, make_on_gpu, read_to_gpu
from mxfp4_repack.tensors import (
    TensorInfo, import_torch, numpy_type, row_major, tensor_view, torch_device)

_CHECK_THREADS = 4
_MOST_THREADS = 1024  # that the library takes


class Layer:
    """One MoE layer of a blob, its file open. A context manager; reads are thread-safe.

    prefix: module path in the checkpoint; entry: the manifest's object of this layer;
    num_experts: local experts; tensors: names without prefix, in file order.
    """

    def __init__(self, file: NativeLayer, entry: Mapping[str, Any], num_experts: int, infos: Sequence[TensorInfo]) -> None:
        self._file = file
        self.entry = entry
        self.prefix: str = entry["prefix"]
        self.num_experts = num_experts
        self._infos = {info.name: info for info in infos}
        self.tensors: Tuple[str, ...] = tuple(self._infos)
        self._numbers = {name: number for number, name in enumerate(self.tensors)}

    def __enter__(self) -> "Layer":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<layer {self.prefix!r} of {self.path!r}: {', '.join(self.tensors)}>"

    def __getitem__(self, name: str) -> NDArray[Any]:
        """The tensor as numpy() gives it."""
        return self.numpy(name)

    def __len__(self) -> int:
        return len(self.tensors)

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __contains__(self, name: object) -> bool:
        return name in self.tensors

    def close(self) -> None:
        """Closes the file; later reads raise."""
        self._file.close()

    @property
    def path(self) -> str:
        """The layer's file."""
        return self._file.path

    @property
    def direct(self) -> bool:
        """Whether tensors are read past the system's page cache; see open_blob."""
        return self._file.direct

    def info(self, name: str) -> TensorInfo:
        """What the manifest says of a tensor, named as in `tensors`. Raises NotFoundError."""
        info = self._infos.get(name) if isinstance(name, str) else None
        if info is None:
            raise NotFoundError(self.path, f"{self.prefix}.{name}", "no such tensor in this layer")
        return info

    def numpy(self, name: str, expert: Optional[int] = None, *,
              stored: bool = False) -> NDArray[Any]:
        """Reads into a new array [info.shape], or [info.shape[1:]] for one local expert.

        Strides are the kernel's; with `stored` the shape is the file's, row-major. bfloat16 comes as
        uint16 and the 8-bit and 4-bit floats as uint8. Raises NotFoundError for an expert that is
        not there or a tensor without an outermost expert axis, and what reading raises.
        """
        info, begin, size, shape, strides = self._slice(name, expert, stored)
        try:
            flat = np.empty(size, "u1")
        except (MemoryError, ValueError) as error:
            raise ReadError(self.path, info.full_name, str(error)) from None
        self._file.read_into(self._numbers[name], begin, flat)
        array = flat.view(numpy_type(info, self.path))
        return np.lib.stride_tricks.as_strided(
            array, shape, [step * array.itemsize for step in strides])

    def torch(self, name: str, device: Any = None, expert: Optional[int] = None) -> Any:
        """Reads a tensor, or one expert of it, as a torch tensor of info.torch_dtype with info.flags
        set; see tensor_view.

        info.slack_bytes more bytes are allocated behind the tensor. A whole tensor goes to a GPU
        as in to_device(); one expert is an ordinary copy.
        """
        torch = import_torch(self.path)
        if device is not None:
            device = torch_device(torch, device, self.path)
        if expert is None and device is not None and device.type == "cuda":
            return self.to_device(device, [name])[name]
        info, begin, size, shape, strides = self._slice(name, expert, False)
        try:
            flat = torch.empty(size + info.slack_bytes, dtype=torch.uint8)
        except (MemoryError, RuntimeError) as error:
            raise ReadError(self.path, info.full_name, str(error)) from None
        self._file.read_into(self._numbers[name], begin, flat.numpy()[:size])
        flat[size:].zero_()
        flat = flat if device is None else flat.to(device)
        return tensor_view(info, flat, self.path, shape, strides)

    def to_device(self, device: Any, names: Optional[Sequence[str]] = None) -> Dict[str, Any]:
        """{name: torch tensor} of all tensors, or of `names`, on `device`; see mxfp4_repack.loader."""
        torch = import_torch(self.path)
        wanted = None if names is None else self._checked_names(names)
        from mxfp4_repack import loader
        return loader.load(self, torch_device(torch, device, self.path), wanted)

    def read_into(self, name: str, begin: int, out: Bytes, threads: int = 1) -> None:
        """Fills `out`, contiguous uint8, with the tensor's bytes from `begin` on; a whole tensor is compared
        with its checksum. Thread-safe."""
        info = self.info(name)
        begin = whole_number(begin, self.path, "begin")
        self._check_memory("out", out)
        if not 0 <= begin <= info.nbytes - out.size:
            raise SizeError(self.path, info.full_name, f"bytes {begin} to {begin + out.size} of "
                                                       f"{info.nbytes} were asked for")
        self._file.read_into(self._numbers[name], begin, out, self._checked_threads(threads))

    def read_to_gpu(self, gpu: NativeGpu, addresses: Mapping[str, int]) -> None:
        """Reads whole tensors to the GPU's memory at `addresses`, by name."""
        read_to_gpu(self._file, gpu, [self._numbers[name] for name in addresses], list(addresses.values()))

    def can_make_on_gpu(self) -> bool:
        """Whether make_on_gpu() can make all tensors: of a checkpoint, and in a layout that a GPU makes."""
        return can_make(self._file, range(len(self.tensors)))

    def make_on_gpu(self, gpu: NativeGpu, addresses: Mapping[str, int], held: Mapping[str, Tuple[int, int]]) -> None:
        """Makes tensors at `addresses`, by name, from the checkpoint's own that are held in the GPU's memory: by their
        names, address and bytes. Raises NotFoundError for the first that is missing; nothing is changed then."""
        make_on_gpu(self._file, gpu, [self._numbers[name] for name in addresses], list(addresses.values()), held)

    def check_file(self) -> None:
        """Reads the whole file; ChecksumError unless its checksum is the manifest's."""
        self._file.check_file(_CHECK_THREADS)

    def check_tensors(self) -> None:
        """Reads and decodes every tensor; ChecksumError names the first that differs."""
        memory = np.empty(max((info.nbytes for info in self._infos.values()), default=0), "u1")
        for name, info in self._infos.items():
            self.read_into(name, 0, memory[:info.nbytes], _CHECK_THREADS)

    def _check_memory(self, name: str, memory: Any) -> None:
        """Raises ArgumentError unless threads may write to `memory` from end to end."""
        if (not isinstance(memory, np.ndarray) or memory.dtype != np.uint8
                or not memory.flags.c_contiguous or not memory.flags.writeable):
            raise ArgumentError(self.path, name, "expected a writable, contiguous uint8 array")

    def _checked_names(self, names: Any) -> List[str]:
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise ArgumentError(self.path, "names", f"{names!r}, expected a list of names")
        return list(names)

    def _checked_threads(self, threads: int) -> int:
        threads = whole_number(threads, self.path, "threads")
        if not 0 <= threads <= _MOST_THREADS:
            raise ArgumentError(self.path, "threads", f"{threads}, expected 0 to {_MOST_THREADS}")
        return threads

    def _slice(self, name: str, expert: Optional[int], stored: bool,
               ) -> Tuple[TensorInfo, int, int, Tuple[int, ...], Tuple[int, ...]]:
        """(info, first byte, bytes, shape, strides) of a tensor or one expert of it."""
        info = self.info(name)
        shape, strides = info.shape, info.strides
        if stored:
            shape, strides = info.file_shape, row_major(info.file_shape)
        if expert is None:
            return info, 0, info.nbytes, shape, strides
        count, expert = self.num_experts, whole_number(expert, self.path, "expert")
        if not 0 <= expert < count:
            raise NotFoundError(self.path, info.full_name, f"expert {expert} of {count} local ones")
        elements = math.prod(info.file_shape)
        if (info.file_shape[:1] != (count,) or shape[:1] != (count,)
                or strides[0] * count != elements):
            raise NotFoundError(self.path, info.full_name,
                                f"{list(shape)} has no outermost axis of {count} experts")
        size = info.nbytes // count
        return info, expert * size, size, shape[1:], strides[1:]
