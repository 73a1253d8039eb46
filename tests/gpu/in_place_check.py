#!/usr/bin/env python3
"""Read a blob in place, to memory that CPUs and a GPU share, and look at it from the GPU.

    in_place_check.py BLOB

For managed memory, pinned memory of the host and the system's own: every tensor of the first layer is read
there with in_place, copied by the GPU to memory of its own, and compared with what the host reads. Memory
of the GPU is refused, and so is the system's where the GPU does not reach it. Prints one line for each
kind of memory with the rate of 5 reads, and of reads through the ring to the GPU's memory. Needs a GPU,
CUDA's driver, numpy; MXFP4_REPACK_LIBRARY names the library."""
import ctypes
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts" / "python"))

import numpy as np

import mxfp4_repack
from mxfp4_repack.native import open_gpu

REPEATS = 5
PAGEABLE = 88  # CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS
cuda = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    status = getattr(cuda, name)(*arguments)
    if status:
        sys.exit(f"in_place_check: {name}: {status}")


def address_of(name, size, *more):
    place = ctypes.c_uint64()
    call(name, ctypes.byref(place), ctypes.c_size_t(size), *more)
    return place.value


def attribute(number):
    value = ctypes.c_int()
    call("cuDeviceGetAttribute", ctypes.byref(value), number, 0)
    return value.value


def seen_by_gpu(address, size):
    """The bytes there, as the GPU's copy engine reads them."""
    own, out = address_of("cuMemAlloc_v2", size), np.empty(size, "u1")
    call("cuMemcpy", ctypes.c_uint64(own), ctypes.c_uint64(address), ctypes.c_size_t(size))
    call("cuMemcpyDtoH_v2", out.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(own), ctypes.c_size_t(size))
    call("cuMemFree_v2", ctypes.c_uint64(own))
    return out


def read(layer, gpu, names, addresses):
    reading = layer.read_to_gpu(gpu, names)
    try:
        reading.place(addresses)
        reading.finish()
    finally:
        reading.close()


def check(layer, gpu, kind, allocate, shared):
    names = list(layer.tensors)
    sizes = [layer.info(name).nbytes for name in names]
    places = [allocate(size) for size in sizes]
    try:
        read(layer, gpu, names, places)
    except mxfp4_repack.BlobError as error:
        good = not shared and "memory is not shared by CPUs and GPU" in str(error)
        print(f"{'ok  ' if good else 'FAIL'} {kind}: {error}")
        return good
    equal = all(np.array_equal(seen_by_gpu(place, size), layer.numpy(name, stored=True).reshape(-1).view("u1"))
                for name, size, place in zip(names, sizes, places))
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        read(layer, gpu, names, places)
        times.append(time.perf_counter() - begin)
    good = equal and shared
    print(f"{'ok  ' if good else 'FAIL'} {kind}: {sum(sizes) / statistics.median(times) / 1e9:.1f} GB/s, "
          f"{'every byte' if equal else 'other bytes'}")
    return good


def main():
    call("cuInit", 0)
    context = ctypes.c_void_p()
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxPushCurrent_v2", context)
    layer = mxfp4_repack.open_blob(sys.argv[1]).layer(0)
    ring, in_place = (open_gpu(0, 14, 64 << 20, in_place) for in_place in (False, True))
    kept = []

    def of_system(size):
        kept.append(np.zeros(size, "u1"))
        return kept[-1].ctypes.data

    results = [
        check(layer, ring, "ring, the GPU's memory", lambda size: address_of("cuMemAlloc_v2", size), True),
        check(layer, in_place, "in place, managed memory", lambda size: address_of("cuMemAllocManaged", size, 1), True),
        check(layer, in_place, "in place, pinned memory", lambda size: address_of("cuMemHostAlloc", size, 0), True),
        check(layer, in_place, "in place, the system's memory", of_system, attribute(PAGEABLE) != 0),
        check(layer, in_place, "in place, the GPU's memory", lambda size: address_of("cuMemAlloc_v2", size), False)]
    sys.exit(0 if all(results) else 1)


main()
