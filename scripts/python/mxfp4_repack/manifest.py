"""Reads the manifest, and refuses one that the program would not have written byte for byte.

Members, types and order are those of mxfp4-repack-container(5). The shapes and types of a layout's
tensors are not checked here: only the program knows them.
"""
from __future__ import annotations

import hashlib
import json
import os
from typing import Any, Callable, FrozenSet, Mapping, Tuple

from mxfp4_repack.checksum import xxh3_128
from mxfp4_repack.errors import ChecksumError, FormatError, ReadError, SizeError
from mxfp4_repack.fields import Fields, parse_json
from mxfp4_repack.layer_file import open_regular

FORMAT_VERSION = 1

_SEAL = b',\n  "manifest_xxh3_128": "'
_MAX_BYTES = 64 << 20
_MAX_SIZE = 1 << 22  # of H and I
_MAX_TOTAL = 1 << 53  # bytes of all files and tensors
_FRAME_BYTES = 2 << 20
_BLOCK = 32

BACKENDS = frozenset(
    "NONE B12X_MXFP4_MXFP8 B12X_MXFP4_BF16 DEEPGEMM_MXFP4 FLASHINFER_TRTLLM_MXFP4_MXFP8 "
    "FLASHINFER_TRTLLM_MXFP4_BF16 FLASHINFER_CUTLASS_MXFP4_MXFP8 FLASHINFER_CUTLASS_MXFP4_BF16 "
    "CUTLASS_MXFP4_MXFP4 BATCHED_MARLIN MARLIN AITER_MXFP4_BF16 AITER_TRITON_MXFP4_BF16 "
    "AITER_MXFP4_FP8 AITER_MXFP4_MXFP4 AITER_TRITON_MXFP4_MXFP4 TRITON TRITON_UNFUSED XPU CPU "
    "EMULATION HUMMING FLASHINFER_MOE_EP_CUTEDSL FLASHINFER_MOE_EP_DEEP_GEMM".split())
_DTYPES = frozenset(
    "BOOL F4 F6_E2M3 F6_E3M2 U8 I8 F8_E5M2 F8_E4M3 F8_E8M0 F8_E4M3FNUZ F8_E5M2FNUZ I16 U16 F16 BF16 "
    "I32 U32 F32 C64 F64 I64 U64".split())
_LOADERS = frozenset("gpt_oss_stacked gpt_oss_per_expert quark_stacked generic loaded".split())

# Checks the member `key`; raises FormatError.
Rule = Callable[[Fields, str], None]


def _text(fields: Fields, key: str) -> None:
    fields.get(key, str)


def _some_text(fields: Fields, key: str) -> None:
    if not fields.get(key, str):
        raise FormatError(fields.file, fields.key(key), "is empty")


def _size(fields: Fields, key: str) -> None:
    fields.size(key)


def _some_size(fields: Fields, key: str) -> None:
    if not fields.size(key):
        raise FormatError(fields.file, fields.key(key), "is 0")


def _flag(fields: Fields, key: str) -> None:
    fields.get(key, bool)


def _one_of(names: FrozenSet[str]) -> Rule:
    def rule(fields: Fields, key: str) -> None:
        if fields.get(key, str) not in names:
            raise FormatError(fields.file, fields.key(key),
                              f"unknown value {fields.value[key]!r}")
    return rule


def _or_null(rule: Rule) -> Rule:
    return lambda fields, key: None if fields.value[key] is None else rule(fields, key)


def _list_of(kind: type, least: int = 0) -> Rule:
    def rule(fields: Fields, key: str) -> None:
        values = fields.get(key, list)
        wrong = any(type(v) is not kind or (kind is int and not 0 <= v < 1 << 63) for v in values)
        if wrong or len(values) < least:
            raise FormatError(fields.file, fields.key(key), f"expected a list of {kind.__name__}")
    return rule


def _sorted_map(rule: Rule) -> Rule:
    """An object of any keys, ordered by their bytes."""
    def check(fields: Fields, key: str) -> None:
        members = fields.object(key)
        names = list(members.value)
        if names != sorted(names, key=str.encode):
            raise FormatError(fields.file, fields.key(key), "not in the order of its names")
        for name in names:
            rule(members, name)
    return check


def _trace(fields: Fields, key: str) -> None:
    for step in fields.get(key, list):
        good = (type(step) is list and len(step) == 4 and type(step[0]) is str
                and type(step[1]) in (str, type(None)) and type(step[2]) is bool
                and type(step[3]) is (type(None) if step[2] else str))
        if not good:
            raise FormatError(fields.file, fields.key(key),
                              "expected [class, key, supported, reason]")


def _object(*members: Tuple[Any, ...]) -> Rule:
    """An object of these members in this order, each (key, rule) or, if it may be absent, (key, rule, None)."""
    order = {member[0]: place for place, member in enumerate(members)}

    def check(fields: Fields, key: str) -> None:
        inner = fields.object(key) if key else fields
        last = -1
        for name in inner.value:
            if order.get(name, -1) <= last:
                raise FormatError(inner.file, inner.key(name), "is not known, or not in its place")
            last = order[name]
        for name, rule, *absent in members:
            if name in inner.value or not absent:
                if name not in inner.value:
                    inner.get(name, object)
                rule(inner, name)
    return check


def _objects(rule: Rule, least: int = 0) -> Rule:
    def check(fields: Fields, key: str) -> None:
        items = list(fields.objects(key))
        if len(items) < least:
            raise FormatError(fields.file, fields.key(key), "is empty")
        for item in items:
            rule(item, "")
    return check


def _plain_name(fields: Fields, key: str) -> None:
    name = fields.get(key, str)
    if not name or name.startswith(".") or "/" in name or "\0" in name:
        raise FormatError(fields.file, fields.key(key), "expected a plain file name")


_FAMILY = _one_of(frozenset({"gpt_oss", "generic"}))
_STORAGE = _object(
    ("torch_dtype", _some_text, None), ("layout", _some_text, None),
    ("layout_name", _some_text, None), ("layout_kwargs", _sorted_map(_size), None),
    ("layout_init_shape", _list_of(int, 1), None), ("storage_shape", _list_of(int, 1), None),
    ("storage_strides", _list_of(int, 1), None), ("logical_shape", _list_of(int, 1), None),
    ("logical_dtype", _some_text, None), ("slack_bytes", _some_size, None),
    ("flags", _list_of(str, 1), None))
_LAYER = _object(
    ("index", _size), ("prefix", _text), ("engine_prefix", _some_text, None),
    ("file", _plain_name), ("size", _size), ("xxh3_128", _text),
    ("sizes", _object(
        ("num_experts", _size), ("hidden_size", _size), ("intermediate_size", _size),
        ("padded_hidden_size", _size), ("padded_intermediate_size", _size),
        ("bias", _or_null(_one_of(_DTYPES))), ("input_scales", _flag))),
    ("tensors", _objects(_object(
        ("name", _text), ("dtype", _text), ("shape", _list_of(int)), ("xxh3_128", _text),
        ("storage", _STORAGE)))))
_MANIFEST = _object(
    ("format", _text), ("format_version", _size), ("tool_version", _text), ("revision", _text),
    ("vllm_commit", _text), ("layout", _text), ("kernel_library", _some_text, None),
    ("decision", _object(
        ("backend", _or_null(_one_of(BACKENDS))), ("experts_class", _some_text, None),
        ("forced", _flag), ("trace", _trace), ("notes", _list_of(str)))),
    ("target", _object(
        ("backend", _one_of(BACKENDS)), ("family", _FAMILY),
        ("platform", _one_of(frozenset({"cuda", "rocm", "xpu", "cpu", "other"}))), ("arch", _text),
        ("world_size", _size), ("activation", _some_text, None), ("knobs", _sorted_map(_text)),
        ("env", _sorted_map(_text)))),
    ("deployment", _object(
        ("tp_size", _size), ("pcp_size", _size), ("dp_size", _size),
        ("enable_expert_parallel", _flag), ("all2all_backend", _text), ("enable_eplb", _flag),
        ("sequence_parallel", _flag))),
    ("rank", _object(
        ("rank", _size), ("num_ranks", _size), ("tp_rank", _size), ("tp_size", _size),
        ("ep_rank", _size), ("ep_size", _size), ("experts", _list_of(int)),
        ("intermediate_range", _list_of(int)), ("w2_bias", _flag))),
    ("model", _object(
        ("style", _text), ("loader", _one_of(_LOADERS)),
        ("w13_order", _one_of(frozenset({"interleaved", "halves"}))), ("scale_fill", _size),
        ("bias_dtype", _one_of(_DTYPES)), ("all_layers", _flag))),
    ("layers", _objects(_LAYER)),
    ("rest", _objects(_object(("file", _plain_name), ("size", _size), ("xxh3_128", _text)), 1),
     None),
    ("source", _object(
        ("kind", _text), ("model_type", _some_text, None), ("activation", _some_text, None),
        ("fingerprint", _some_text, None),
        ("files", _objects(_object(("name", _text), ("size", _size)))))),
    ("compression", _object(
        ("method", _one_of(frozenset({"zstd", "none"}))), ("level", _size, None),
        ("frame_bytes", _size, None), ("libzstd", _text, None))),
    ("warnings", _list_of(str)), ("manifest_xxh3_128", _text))


def check_manifest(path: str, manifest: Any) -> None:
    """Raises FormatError, which names the first key of the manifest whose value is impossible.

    `path`: the manifest's file, for the error."""
    fields = Fields(path, manifest)
    if fields.get("format", str) != "mxfp4-repack":
        raise FormatError(path, "format", "expected mxfp4-repack")
    if fields.get("format_version", int) != FORMAT_VERSION:
        raise FormatError(path, "format_version",
                          f"{manifest['format_version']} is not known, {FORMAT_VERSION} is")
    _MANIFEST(fields, "")
    _check_compression(fields.object("compression"))
    if manifest["model"]["scale_fill"] > 0xFF:
        raise FormatError(path, "model.scale_fill", "not a byte")
    _check_rank(fields.object("rank"))
    suffix = ".zst" if manifest["compression"]["method"] == "zstd" else ""
    seen = set()
    for layer in fields.objects("layers"):
        index = layer.value["index"]
        if index in seen:
            raise FormatError(path, layer.key("index"), f"{index} appears twice")
        seen.add(index)
        if layer.value["file"] != f"layer-{index:05}.safetensors{suffix}":
            raise FormatError(path, layer.key("file"), f"is not that of layer {index}")
        _check_sizes(layer.object("sizes"), manifest["rank"])
        if layer.value["sizes"]["bias"] not in (None, manifest["model"]["bias_dtype"]):
            raise FormatError(path, layer.key("sizes.bias"), "is not the model's bias_dtype")
        for tensor in layer.objects("tensors"):
            storage = tensor.object("storage")
            if ("layout" in storage.value) != ("layout_kwargs" in storage.value):
                raise FormatError(path, storage.key("layout_kwargs"), "belong to a layout")
    total = sum(layer["size"] for layer in manifest["layers"])
    total += sum(file["size"] for file in manifest.get("rest", ()))
    if total > _MAX_TOTAL:
        raise FormatError(path, "layers", "their sizes add up to more than 2^53 bytes")


def _check_compression(fields: Fields) -> None:
    want = {"zstd": ["method", "level", "frame_bytes", "libzstd"], "none": ["method"]}
    good = list(fields.value) == want[fields.value["method"]] and (
        fields.value.get("frame_bytes", _FRAME_BYTES) == _FRAME_BYTES
        and fields.value.get("level", 0) < 1 << 31)
    if not good:
        raise FormatError(fields.file, fields.path, "is none that the program writes")


def _check_rank(fields: Fields) -> None:
    rank = fields.value
    for index, count in (("rank", "num_ranks"), ("tp_rank", "tp_size"), ("ep_rank", "ep_size")):
        if rank[index] >= rank[count]:
            raise FormatError(fields.file, fields.key(index), f"{rank[index]} of {rank[count]}")
    experts, cut = rank["experts"], rank["intermediate_range"]
    if any(a >= b for a, b in zip(experts, experts[1:])):
        raise FormatError(fields.file, fields.key("experts"), "not in ascending order")
    if len(cut) != 2 or cut[0] > cut[1]:
        raise FormatError(fields.file, fields.key("intermediate_range"), "expected [begin, end]")


def _check_sizes(fields: Fields, rank: Mapping[str, Any]) -> None:
    sizes = fields.value
    experts, hidden, inter = sizes["num_experts"], sizes["hidden_size"], sizes["intermediate_size"]
    padded = sizes["padded_hidden_size"], sizes["padded_intermediate_size"]
    begin, end = rank["intermediate_range"]
    if (experts != len(rank["experts"]) or inter != end - begin or hidden > padded[0]
            or inter > padded[1]):
        raise FormatError(fields.file, fields.path, "are not those that the rank holds")
    for h, i in ((hidden, inter), padded):
        if (h == 0 or h % _BLOCK or i % _BLOCK or max(h, i) > _MAX_SIZE
                or experts * 8 * h * i * 2 >= 1 << 63):
            raise FormatError(fields.file, fields.path, f"no layer has H {h}, I {i}")


def read_manifest(path: str, sealed: bool = False) -> Tuple[Mapping[str, Any], str]:
    """The JSON object, checked, and the SHA-256 of its file. `sealed`: the library checked its seal."""
    try:
        with open_regular(path) as file:
            text = b"".join(iter(lambda: file.read(1 << 24), b"")) if (
                os.fstat(file.fileno()).st_size <= _MAX_BYTES) else None
    except OSError as error:
        raise ReadError(path, "", error.strerror or str(error)) from None
    if text is None:
        raise SizeError(path, "", f"more than {_MAX_BYTES} bytes")
    at = text.rfind(_SEAL)
    if at < 0:
        raise FormatError(path, "manifest_xxh3_128", "missing; the file may be truncated")
    if not sealed and text[at + len(_SEAL):] != xxh3_128(text[:at]).encode() + b'"\n}\n':
        raise ChecksumError(path, "manifest_xxh3_128", "the manifest was changed after it was "
                                                       "written")
    manifest: Mapping[str, Any] = Fields(path, parse_json(path, "", text)).value
    check_manifest(path, manifest)
    if json.dumps(manifest, indent=2, ensure_ascii=False).encode() + b"\n" != text:
        raise FormatError(path, "", "is not in the form that the program writes")
    return manifest, hashlib.sha256(text).hexdigest()
