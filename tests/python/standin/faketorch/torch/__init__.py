"""As much of torch as the reader and the vLLM plug-in use on a CPU, over numpy.

On machines without torch, the code of both runs for real on it, with types that old releases of torch
lack. A tensor is a numpy array and a type; types that numpy lacks are unsigned integers of their
width. Tensors of the device "meta" have a shape and one element for all.
"""
import builtins
import functools

import numpy as np

from . import cuda, distributed, nn  # noqa: F401

__version__ = "0.standin"


class dtype:
    def __init__(self, name, numpy_type):
        self.name, self.numpy_type = name, np.dtype(numpy_type)
        self.itemsize = self.numpy_type.itemsize

    def __repr__(self):
        return "torch." + self.name


uint8, int8, int16, int32, int64 = (dtype(*t) for t in (
    ("uint8", "u1"), ("int8", "i1"), ("int16", "i2"), ("int32", "i4"), ("int64", "i8")))
float16, float32, bfloat16 = (dtype(*t) for t in (
    ("float16", "f2"), ("float32", "f4"), ("bfloat16", "u2")))
float8_e4m3fn, float8_e8m0fnu, float4_e2m1fn_x2 = (
    dtype(name, "u1") for name in ("float8_e4m3fn", "float8_e8m0fnu", "float4_e2m1fn_x2"))
bool = dtype("bool", "?")

_OF_NUMPY = {t.numpy_type: t for t in (uint8, int8, int16, int32, int64, float16, float32, bool)}
_default_devices = []


class device:
    """Also a context: tensors that are made in it lie there."""

    def __init__(self, name, index=None):
        name = name.name if isinstance(name, device) else name
        self.type, _, number = name.partition(":")
        self.index = int(number) if number else index
        self.name = name

    def __eq__(self, other):
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self):
        return hash((self.type, self.index))

    def __repr__(self):
        return "device(%r)" % self.name

    def __enter__(self):
        _default_devices.append(self)

    def __exit__(self, *error):
        _default_devices.pop()


class Size(tuple):
    pass


def _without_data(shape, kind):
    return np.broadcast_to(np.zeros((), kind.numpy_type), tuple(shape))


class Storage:
    """The memory that a tensor's array lies in."""

    def __init__(self, array):
        owner = array
        while owner is not None:  # as_strided puts an object between the two arrays
            array = owner if isinstance(owner, np.ndarray) else array
            owner = getattr(owner, "base", None)
        self._array = array

    def nbytes(self):
        return self._array.nbytes

    def data_ptr(self):
        return self._array.__array_interface__["data"][0]


class Tensor:
    def __init__(self, array, kind=None, on=None):
        self._array = array
        self.dtype = kind or _OF_NUMPY[array.dtype]
        self.device = device(on or "cpu")

    def _like(self, array, kind=None):
        return Tensor(array, kind or self.dtype, self.device)

    @property
    def shape(self):
        return Size(self._array.shape)

    @property
    def is_meta(self):
        return self.device.type == "meta"

    @property
    def data(self):
        return self

    def stride(self):
        if self.is_meta:
            sizes = [1]
            for n in reversed(self.shape[1:]):
                sizes.append(sizes[-1] * n)
            return tuple(reversed(sizes)) if self.shape else ()
        return tuple(step // self.element_size() for step in self._array.strides)

    def data_ptr(self):
        return 0 if self.is_meta else self._array.__array_interface__["data"][0]

    def untyped_storage(self):
        return Storage(self._array)

    def storage_offset(self):
        return (self.data_ptr() - self.untyped_storage().data_ptr()) // self.element_size()

    def set_(self, storage, begin, shape, strides):
        """Of bytes that lie side by side."""
        self._array = storage._array.reshape(-1).view("u1")[begin:begin + shape[0]]
        return self

    def dim(self):
        return len(self.shape)

    def numel(self):
        return int(np.prod(self.shape, dtype=np.int64))

    def element_size(self):
        return self.dtype.itemsize

    def numpy(self):
        if self.is_meta:
            raise RuntimeError("a meta tensor has no data")
        return self._array

    def cpu(self):
        return self

    def tolist(self):
        return self.numpy().tolist()

    def detach(self):
        return self

    def view(self, *shape):
        if isinstance(shape[0], dtype):
            return self._like(self._array.view(shape[0].numpy_type), shape[0])
        return self.reshape(*shape)

    def reshape(self, *shape):
        shape = shape[0] if isinstance(shape[0], (tuple, list)) else shape
        return self._like(self._array.reshape(shape))

    def as_strided(self, shape, strides):
        steps = [step * self.element_size() for step in strides]
        return self._like(np.lib.stride_tricks.as_strided(self._array, tuple(shape), steps))

    def transpose(self, one, two):
        return self._like(self._array.swapaxes(one, two))

    def contiguous(self):
        return self if self.is_meta else self._like(np.ascontiguousarray(self._array))

    def clone(self):
        return self if self.is_meta else self._like(self._array.copy())

    def to(self, where):
        if isinstance(where, dtype):
            return self._like(self.numpy().astype(where.numpy_type), where)
        if device(where) == self.device:
            return self
        if device(where).type == "meta":
            return Tensor(_without_data(self.shape, self.dtype), self.dtype, where)
        return Tensor(self.numpy().copy(), self.dtype, where)

    def __getitem__(self, index):
        return self._like(self._array[index])

    def __setitem__(self, index, value):
        self._array[index] = value._array if isinstance(value, Tensor) else value

    def zero_(self):
        self._array[...] = 0
        return self

    def copy_(self, other, non_blocking=False):
        if not self.is_meta:
            self._array[...] = other._array
        return self

    def sum(self):
        return Tensor(np.asarray(self.numpy().sum(dtype=np.int64)))

    def max(self):
        return self._like(np.asarray(self.numpy().max()))

    def __int__(self):
        return int(self.numpy())

    def __ne__(self, other):
        return Tensor(self.numpy() != other.numpy())

    __hash__ = object.__hash__

    def __xor__(self, bits):
        return self._like(self.numpy() ^ bits)

    def __rshift__(self, bits):
        return self._like(self.numpy() >> bits)

    def __and__(self, bits):
        return self._like(self.numpy() & bits)


def _make(fill, shape, kind, where):
    where = where or (_default_devices[-1] if _default_devices else "cpu")
    if device(where).type == "meta":
        return Tensor(_without_data(shape, kind), kind, where)
    return Tensor(np.full(tuple(shape), fill, kind.numpy_type), kind, where)


def _shape(sizes):
    return tuple(sizes[0]) if sizes and isinstance(sizes[0], (tuple, list)) else sizes


_modes = []  # of torch.overrides, the innermost last


def _seen_by_modes(function):
    """A function that makes tensors, called through the modes that are entered."""
    @functools.wraps(function)
    def maker(*args, **kwargs):
        if not _modes:
            return function(*args, **kwargs)
        mode = _modes.pop()
        try:
            return mode.__torch_function__(maker, (), args, kwargs)
        finally:
            _modes.append(mode)
    return maker


@_seen_by_modes
def empty(*sizes, dtype=float32, device=None, pin_memory=False):
    return _make(0xA5 if dtype is uint8 else 0, _shape(sizes), dtype, device)


@_seen_by_modes
def zeros(*sizes, dtype=float32, device=None):
    return _make(0, _shape(sizes), dtype, device)


@_seen_by_modes
def full(shape, value, dtype=float32, device=None):
    return _make(value, shape, dtype, device)


@_seen_by_modes
def tensor(values, dtype=float32, device=None):
    made = _make(0, (len(values),), dtype, device)
    if not made.is_meta:
        made._array[...] = values
    return made


@_seen_by_modes
def ones(*sizes, dtype=float32, device=None):
    return _make(1, _shape(sizes), dtype, device)


def empty_like(tensor, device=None):
    return _make(0, tensor.shape, tensor.dtype, device or tensor.device)


def from_numpy(array):
    return Tensor(array)


def as_strided(tensor, shape, strides):
    return tensor.as_strided(shape, strides)


def equal(one, two):
    return builtins.bool(one.shape == two.shape and np.array_equal(one.numpy(), two.numpy()))


def bincount(tensor, minlength=0):
    return Tensor(np.bincount(tensor.numpy(), minlength=minlength))
