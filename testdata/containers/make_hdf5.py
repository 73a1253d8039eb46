#!/usr/bin/python3
"""Makes hdf5/variety_*.h5 (everything that is read) and hdf5_refused/*.h5 (one reason each to refuse
or to pass over).

Run in this directory, with Debian's python3-h5py and python3-zstandard. Values are arithmetic, so that
tests can compute them: element i of a dataset is (i * 37 + 11) % 251, in 16 bits i * 977 + 5.
"""
import itertools
import zlib

import h5py
import numpy as np
import zstandard


def u8(*shape):
    return ((np.arange(np.prod(shape)) * 37 + 11) % 251).astype(np.uint8).reshape(shape)


def u16(*shape):
    return (np.arange(np.prod(shape)) * 977 + 5).astype(np.uint16).reshape(shape)


def zstd_dataset(group, name, data, chunks, shuffle=False):
    """Stores chunks that were compressed here: h5py has no filter 32015."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk(chunks)
    if shuffle:
        plist.set_shuffle()
    plist.set_filter(32015, h5py.h5z.FLAG_OPTIONAL, (3,))
    space = h5py.h5s.create_simple(data.shape)
    dataset = h5py.h5d.create(group.id, name.encode(), h5py.h5t.py_create(data.dtype), space, plist)
    for at in itertools.product(*[range(0, s, c) for s, c in zip(data.shape, chunks)]):
        block = np.zeros(chunks, data.dtype)
        part = data[tuple(slice(i, i + c) for i, c in zip(at, chunks))]
        block[tuple(slice(0, s) for s in part.shape)] = part
        raw = block.tobytes()
        if shuffle:
            raw = np.frombuffer(raw, np.uint8).reshape(-1, data.dtype.itemsize).T.tobytes()
        dataset.write_direct_chunk(at, zstandard.ZstdCompressor().compress(raw))


for name, libver in (("v0", "earliest"), ("v3", "latest")):
    with h5py.File(f"hdf5/variety_{name}.h5", "w", libver=libver) as f:
        f.attrs["layout"] = "loaded"
        f.attrs["family"] = np.bytes_("generic")
        f.attrs["num_experts"] = 5
        f.attrs["floats"] = [0.5, 1.5]
        g = f.create_group("layers/10")
        g.create_dataset("gzip", data=u8(5, 7, 9), chunks=(2, 3, 4), compression="gzip",
                         shuffle=True, fletcher32=True)
        g.create_dataset("whole", data=u8(5, 7, 9), chunks=(5, 7, 9))
        g.create_dataset("gzip16", data=u16(5, 7), chunks=(3, 2), compression="gzip", shuffle=True)
        g.create_dataset("rows16", data=u16(5, 7), chunks=(1, 7), shuffle=True, fletcher32=True,
                         maxshape=(None, None))
        wide = g.create_dataset("wide", shape=(5, 7), chunks=(4, 16), maxshape=(None, None), dtype="u2")
        wide[...] = u16(5, 7)
        zstd_dataset(g, "zstd", u8(5, 7, 9), (2, 3, 4))
        zstd_dataset(g, "zstd16", u16(5, 7), (2, 3), shuffle=True)
        g.create_dataset("big_endian", data=u16(5, 7).astype(">u2"), chunks=(2, 2), compression="gzip")
        sparse = g.create_dataset("sparse", shape=(6, 4), chunks=(2, 4), dtype="u2", fillvalue=0x0102)
        sparse[2:4] = 0x0A0B
        two = f.create_group("layers/2")
        two.create_dataset("contiguous", data=u8(5, 7, 9))
        two.create_dataset("big_endian", data=u16(5, 7).astype(">u2"))
        two.create_dataset("scalar", data=np.float32(3.5))
        two.create_dataset("f16", data=u8(3, 4).astype(np.float16))
        two.create_dataset("f32", data=u8(3, 4).astype(np.float32))
        two.create_dataset("f64", data=u8(3, 4).astype(">f8"))
        two.create_dataset("i8", data=u8(3, 4).view(np.int8))
        named = two.create_dataset("u16", data=u16(3, 4))
        named.attrs["dtype"] = "U16"


def refused(name, make, **options):
    with h5py.File(f"hdf5_refused/{name}.h5", "w", **options) as f:
        make(f)


def low_level(f, shape, setup, dtype="u1", max_shape=None):
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    setup(plist)
    space = h5py.h5s.create_simple(shape, max_shape)
    return h5py.h5d.create(f.id, b"a", h5py.h5t.py_create(np.dtype(dtype)), space, plist)


def virtual(f):
    layout = h5py.VirtualLayout(shape=(4,), dtype="u1")
    layout[:] = h5py.VirtualSource("other.h5", "a", shape=(4,))
    f.create_virtual_dataset("a", layout)


def huge_chunks(f):
    low_level(f, (1 << 20, 1 << 20), lambda p: p.set_chunk((1 << 15, 1 << 15)))


def unknown_filter(f):
    def setup(p):
        p.set_chunk((4,))
        p.set_filter(4242, h5py.h5z.FLAG_OPTIONAL, ())
    low_level(f, (4,), setup)


def external(f):
    low_level(f, (4,), lambda p: p.set_external(b"/etc/passwd", 0, 4))


def group_twice(f):
    f.create_group("g")
    f["g/again"] = f["g"]


def same_name(f):
    f.create_dataset("a.b", data=u8(4))
    f.create_dataset("a/b", data=u8(4))


def stated_dtype(f, value):
    f.create_dataset("a", data=u8(4)).attrs["dtype"] = value


def broken_chunk(f, raw, filters):
    def setup(p):
        p.set_chunk((64,))
        for number in filters:
            p.set_filter(number, h5py.h5z.FLAG_OPTIONAL, ())
    low_level(f, (64,), setup).write_direct_chunk((0,), raw)


refused("string", lambda f: f.create_dataset("a", data=["x"]))
refused("compound", lambda f: f.create_dataset("a", data=np.zeros(3, [("x", "u1"), ("y", "u1")])))
refused("enum", lambda f: f.create_dataset("a", data=np.array([True, False])))
refused("complex_float", lambda f: f.create_dataset("a", data=np.zeros(3, "c8")))
refused("array", lambda f: f.create_dataset("a", shape=(2,), dtype=np.dtype("(3,)u1")))
refused("null_space", lambda f: f.create_dataset("a", data=h5py.Empty("u1")))
refused("empty_dimension", lambda f: f.create_dataset("a", shape=(3, 0), dtype="u1"))
refused("rank_9", lambda f: f.create_dataset("a", data=u8(*[1] * 9)))
refused("never_written", lambda f: f.create_dataset("a", shape=(4,), dtype="u1"))
refused("never_written_chunks", lambda f: f.create_dataset("a", shape=(4,), chunks=(2,), dtype="u1"))
refused("virtual", virtual, libver="latest")
refused("external", external)
refused("soft_link", lambda f: f.__setitem__("a", h5py.SoftLink("/nowhere")))
refused("external_link", lambda f: f.__setitem__("layers/0/experts", h5py.ExternalLink("/etc/passwd", "/a")))
refused("huge_chunks", huge_chunks)
refused("unknown_filter", unknown_filter)
refused("group_twice", group_twice)
refused("same_name", same_name)
refused("wrong_format", lambda f: f.attrs.__setitem__("format", "keras"))
refused("wrong_version", lambda f: f.attrs.__setitem__("version", 2))
refused("wrong_layout", lambda f: f.attrs.__setitem__("layout", "packed"))
refused("unknown_dtype", lambda f: stated_dtype(f, "F9"))
refused("wrong_dtype", lambda f: stated_dtype(f, "BF16"))
refused("read_not_zstd", lambda f: broken_chunk(f, u8(40).tobytes(), [32015]))
refused("read_not_deflate", lambda f: broken_chunk(f, u8(40).tobytes(), [1]))
refused("read_short_zstd", lambda f: broken_chunk(f, zstandard.compress(bytes(63)), [32015]))
refused("read_long_zstd", lambda f: broken_chunk(f, zstandard.compress(bytes(1 << 20)), [32015]))
refused("read_short_deflate", lambda f: broken_chunk(f, zlib.compress(bytes(63)), [1]))
refused("read_wrong_checksum", lambda f: broken_chunk(f, u8(68).tobytes(), [3]))
refused("read_no_checksum", lambda f: broken_chunk(f, b"ab", [3]))
