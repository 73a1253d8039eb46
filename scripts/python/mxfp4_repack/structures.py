"""Structures of mxfp4_repack.h."""
from __future__ import annotations

import ctypes

SIZE, INT32, POINTER = ctypes.c_int64, ctypes.c_int32, ctypes.c_void_p


class OpenOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("direct", INT32), ("lazy", INT32)]


class ReadOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("threads", INT32), ("verify", INT32),
                ("cancel", POINTER)]


class GpuOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("threads", INT32), ("ring_bytes", SIZE), ("ranks", INT32), ("makes", INT32)]


class Request(ctypes.Structure):
    _fields_ = [("layer", SIZE), ("tensor", SIZE), ("begin", SIZE), ("memory", POINTER), ("bytes", SIZE)]


class Held(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("memory", POINTER), ("bytes", SIZE)]


class Layer(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("index", SIZE), ("prefix", ctypes.c_char_p),
                ("engine_prefix", ctypes.c_char_p), ("num_tensors", SIZE), ("num_experts", SIZE),
                ("bytes", SIZE), ("direct", INT32), ("reserved", INT32)]


class Tensor(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("dtype", ctypes.c_char_p),
                ("shape", ctypes.POINTER(SIZE)), ("num_dims", SIZE), ("offset", SIZE), ("bytes", SIZE),
                ("expert_bytes", SIZE)]
