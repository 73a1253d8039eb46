"""Reads the manifest, and refuses one that the program would not have written byte for byte.

Members, types and order are those of mxfp4-repack-container(5). The shapes and types of a layout's
tensors are not checked here: only the program knows them.
"""
from __future__ import annotations

import json
import math
import re
from typing import Any, Callable, FrozenSet, List, Mapping, Tuple

import xxhash

from witness.fields import Fields, Refused, parse_json, read_file

MANIFEST_NAME = "mxfp4_repack.json"
FORMAT_VERSION = 1

_SEAL = b',\n  "manifest_xxh3_128": "'
_MAX_BYTES = 64 << 20
_MAX_SIZE = 1 << 22  # of H and I
_MAX_TOTAL = 1 << 53  # bytes of all files and tensors
_MAX_RANKS = 1 << 16
_FRAME_BYTES = 2 << 20
_BLOCK = 32

BACKENDS = frozenset(
    "NONE B12X_MXFP4_MXFP8 B12X_MXFP4_BF16 DEEPGEMM_MXFP4 FLASHINFER_TRTLLM_MXFP4_MXFP8 "
    "FLASHINFER_TRTLLM_MXFP4_BF16 FLASHINFER_CUTLASS_MXFP4_MXFP8 FLASHINFER_CUTLASS_MXFP4_BF16 "
    "CUTLASS_MXFP4_MXFP4 BATCHED_MARLIN MARLIN AITER_MXFP4_BF16 AITER_TRITON_MXFP4_BF16 "
    "AITER_MXFP4_FP8 AITER_MXFP4_MXFP4 AITER_TRITON_MXFP4_MXFP4 TRITON TRITON_UNFUSED XPU CPU "
    "EMULATION HUMMING FLASHINFER_MOE_EP_CUTEDSL FLASHINFER_MOE_EP_DEEP_GEMM "
    "DEEP_GEMM_MEGA_MOE AITER_MEGA_MOE".split())
# safetensors' types that layouts have, bits of an element.
BITS = {"U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F16": 16, "BF16": 16, "I32": 32, "F32": 32}
_DTYPES = frozenset(BITS)
_TORCH_BYTES = {
    "uint8": 1, "int8": 1, "float8_e4m3fn": 1, "float8_e8m0fnu": 1, "float4_e2m1fn_x2": 1, "int4": 1,
    "float16": 2, "bfloat16": 2, "int32": 4, "float32": 4}
_FLAGS = ("is_shuffled",)  # attributes that layouts set on tensors
_MAX_DIMS = 8
_MAX_SLACK = 1 << 20
_STYLES = frozenset(
    "gpt_oss gpt_oss_original deepseek_v4 quark compressed_tensors mxfp4 loaded".split())
_LOADERS = frozenset("gpt_oss_stacked gpt_oss_per_expert quark_stacked inkling_stacked generic loaded".split())

# Checks the member `key`; raises Refused.
Rule = Callable[[Fields, str], None]


def _text(fields: Fields, key: str) -> None:
    fields.get(key, str)


def _some_text(fields: Fields, key: str) -> None:
    if not fields.get(key, str):
        raise Refused(fields.file, fields.key(key), "is empty")


def _checksum(fields: Fields, key: str) -> None:
    if not re.fullmatch("[0-9a-f]{32}", fields.get(key, str)):
        raise Refused(fields.file, fields.key(key), "expected 32 hexadecimal digits")


def _size(fields: Fields, key: str) -> None:
    fields.size(key)


def _ranks(fields: Fields, key: str) -> None:
    if fields.size(key) > _MAX_RANKS:
        raise Refused(fields.file, fields.key(key), f"more than {_MAX_RANKS} ranks")


def _some_size(fields: Fields, key: str) -> None:
    if not fields.size(key):
        raise Refused(fields.file, fields.key(key), "is 0")


def _flag(fields: Fields, key: str) -> None:
    fields.get(key, bool)


def _one_of(names: FrozenSet[str]) -> Rule:
    def rule(fields: Fields, key: str) -> None:
        if fields.get(key, str) not in names:
            raise Refused(fields.file, fields.key(key),
                              f"unknown value {fields.value[key]!r}")
    return rule


def _or_null(rule: Rule) -> Rule:
    return lambda fields, key: None if fields.value[key] is None else rule(fields, key)


def _list_of(kind: type, least: int = 0) -> Rule:
    def rule(fields: Fields, key: str) -> None:
        values = fields.get(key, list)
        wrong = any(type(v) is not kind or (kind is int and not 0 <= v < 1 << 63) for v in values)
        if wrong or len(values) < least:
            raise Refused(fields.file, fields.key(key), f"expected a list of {kind.__name__}")
    return rule


def _sorted_map(rule: Rule) -> Rule:
    """An object of any keys, ordered by their bytes."""
    def check(fields: Fields, key: str) -> None:
        members = fields.object(key)
        names = list(members.value)
        if names != sorted(names, key=str.encode):
            raise Refused(fields.file, fields.key(key), "not in the order of its names")
        for name in names:
            rule(members, name)
    return check


def _trace(fields: Fields, key: str) -> None:
    for step in fields.get(key, list):
        good = (type(step) is list and len(step) == 4 and type(step[0]) is str
                and type(step[1]) in (str, type(None)) and type(step[2]) is bool
                and type(step[3]) is (type(None) if step[2] else str))
        if not good:
            raise Refused(fields.file, fields.key(key),
                              "expected [class, key, supported, reason]")


def _object(*members: Tuple[Any, ...]) -> Rule:
    """An object of these members in this order, each (key, rule) or, if it may be absent, (key, rule, None)."""
    order = {member[0]: place for place, member in enumerate(members)}

    def check(fields: Fields, key: str) -> None:
        inner = fields.object(key) if key else fields
        last = -1
        for name in inner.value:
            if order.get(name, -1) <= last:
                raise Refused(inner.file, inner.key(name), "is not known, or not in its place")
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
            raise Refused(fields.file, fields.key(key), "is empty")
        for item in items:
            rule(item, "")
    return check


def _plain_name(fields: Fields, key: str) -> None:
    name = fields.get(key, str)
    if not name or name.startswith(".") or "/" in name or "\0" in name:
        raise Refused(fields.file, fields.key(key), "expected a plain file name")


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
    ("file", _plain_name), ("size", _size), ("xxh3_128", _checksum),
    ("experts", _list_of(int), None),
    ("sizes", _object(
        ("num_experts", _size), ("hidden_size", _size), ("intermediate_size", _size),
        ("padded_hidden_size", _size), ("padded_intermediate_size", _size),
        ("bias", _or_null(_one_of(_DTYPES))), ("input_scales", _flag))),
    ("tensors", _objects(_object(
        ("name", _text), ("dtype", _one_of(_DTYPES)), ("shape", _list_of(int)), ("xxh3_128", _checksum),
        ("storage", _STORAGE)))),
    ("published", _object(
        ("intermediate_size", _size), ("experts", _size),
        ("tensors", _objects(_object(("name", _text), ("dtype", _one_of(_DTYPES)), ("shape", _list_of(int))))),
        ("files", _objects(_object(("file", _plain_name), ("tensors", _size)))), ("sample", _some_text, None)), None))
_MANIFEST = _object(
    ("format", _text), ("format_version", _size), ("tool_version", _text), ("revision", _text),
    ("vllm_commit", _text, None), ("engine", _one_of(frozenset({"sglang"})), None),
    ("parameter_names", _sorted_map(_text), None), ("layout", _text), ("kernel_library", _some_text, None),
    ("also_serves", _sorted_map(_text), None),
    ("decision", _object(
        ("backend", _or_null(_one_of(BACKENDS))), ("experts_class", _some_text, None),
        ("forced", _flag), ("trace", _trace), ("notes", _list_of(str)))),
    ("asked", lambda fields, key: fields.get(key, dict) and None, None),
    ("target", _object(
        ("backend", _one_of(BACKENDS)), ("family", _FAMILY),
        ("platform", _one_of(frozenset({"cuda", "rocm", "xpu", "cpu", "other"}))), ("arch", _text),
        ("world_size", _ranks), ("activation", _some_text, None), ("knobs", _sorted_map(_text)),
        ("env", _sorted_map(_text)))),
    ("deployment", _object(
        ("tp_size", _size), ("pcp_size", _size), ("dp_size", _size),
        ("enable_expert_parallel", _flag), ("all2all_backend", _text), ("enable_eplb", _flag),
        ("num_redundant_experts", _some_size, None), ("sequence_parallel", _flag))),
    ("rank", _object(
        ("rank", _size), ("num_ranks", _ranks), ("tp_rank", _size), ("tp_size", _ranks),
        ("ep_rank", _size), ("ep_size", _ranks), ("experts", _list_of(int)),
        ("intermediate_range", _list_of(int)), ("w2_bias", _flag))),
    ("model", _object(
        ("style", _one_of(_STYLES)), ("loader", _one_of(_LOADERS)),
        ("w13_order", _one_of(frozenset({"interleaved", "halves"}))), ("scale_fill", _size),
        ("hidden_scale_fill", _size, None),
        ("bias_dtype", _one_of(_DTYPES)), ("all_layers", _flag))),
    ("layers", _objects(_LAYER)),
    ("rest", _objects(_object(("file", _plain_name), ("size", _size), ("xxh3_128", _checksum)), 1),
     None),
    ("checkpoint", _object(
        ("config", _text, None), ("attributes", _sorted_map(_text), None), ("left_out", _list_of(str), None)), None),
    ("source", _object(
        ("kind", _text), ("model_type", _some_text, None), ("activation", _some_text, None),
        ("files", _objects(_object(("name", _text), ("size", _size), ("sha256", _some_text, None)))))),
    ("compression", _object(
        ("method", _one_of(frozenset({"zstd", "none"}))), ("level", _size, None),
        ("frame_bytes", _size, None), ("libzstd", _text, None))),
    ("warnings", _list_of(str)), ("manifest_xxh3_128", _checksum))


def check_manifest(path: str, manifest: Any) -> None:
    """Raises Refused, which names the first key of the manifest whose value is impossible.

    `path`: the manifest's file, for the error."""
    fields = Fields(path, manifest)
    if fields.get("format", str) != "mxfp4-repack":
        raise Refused(path, "format", "expected mxfp4-repack")
    if fields.get("format_version", int) != FORMAT_VERSION:
        raise Refused(path, "format_version",
                          f"{manifest['format_version']} is not known, {FORMAT_VERSION} is")
    _MANIFEST(fields, "")
    if ("engine" in manifest) == ("vllm_commit" in manifest):
        raise Refused(path, "vllm_commit", "belongs to vLLM, and to no other engine")
    if ("engine" in manifest) != ("parameter_names" in manifest):
        raise Refused(path, "parameter_names", "belong to another engine than vLLM")
    _check_compression(fields.object("compression"))
    if manifest["model"]["scale_fill"] > 0xFF:
        raise Refused(path, "model.scale_fill", "not a byte")
    redundant = "num_redundant_experts" in manifest["deployment"]
    _check_rank(fields.object("rank"), redundant)
    suffix = ".zst" if manifest["compression"]["method"] == "zstd" else ""
    seen, prefixes = set(), set()
    for layer in fields.objects("layers"):
        index, prefix = layer.value["index"], layer.value["prefix"]
        if prefix in prefixes:
            raise Refused(path, layer.key("prefix"), f"{prefix} appears twice")
        prefixes.add(prefix)
        if index in seen:
            raise Refused(path, layer.key("index"), f"{index} appears twice")
        seen.add(index)
        if layer.value["file"] != f"layer-{index:05}.safetensors{suffix}":
            raise Refused(path, layer.key("file"), f"is not that of layer {index}")
        held = layer.value.get("experts", manifest["rank"]["experts"])
        _check_ascending(layer, held, redundant)
        _check_sizes(layer.object("sizes"), manifest["rank"], held)
        if layer.value["sizes"]["bias"] not in (None, manifest["model"]["bias_dtype"]):
            raise Refused(path, layer.key("sizes.bias"), "is not the model's bias_dtype")
        if manifest["layout"] == "loaded":
            _check_loaded(layer)
        names = set()
        for tensor in layer.objects("tensors"):
            name = tensor.value["name"]
            if not name.startswith(prefix + ".") or name in names:
                raise Refused(path, tensor.key("name"), f"appears twice, or does not begin with {prefix}.")
            names.add(name)
            shape = tensor.value["shape"]
            if len(shape) > _MAX_DIMS or math.prod(max(size, 1) for size in shape) >= 1 << 60:
                raise Refused(path, tensor.key("shape"), "is too large")
            storage = tensor.object("storage")
            _check_storage(storage, tensor.value)
    total = sum(layer["size"] for layer in manifest["layers"])
    total += sum(file["size"] for file in manifest.get("rest", ()))
    if total > _MAX_TOTAL:
        raise Refused(path, "layers", "their sizes add up to more than 2^53 bytes")


def _check_loaded(layer: Fields) -> None:
    """The loaded layout has no other tensors than the slots that the sizes state."""
    sizes = layer.value["sizes"]
    slots = ["w13_weight", "w2_weight", "w13_weight_scale", "w2_weight_scale"]
    slots += ["w13_bias", "w2_bias"] if sizes["bias"] is not None else []
    slots += ["w13_input_scale", "w2_input_scale"] if sizes["input_scales"] else []
    want = [layer.value["prefix"] + "." + slot for slot in slots]
    if sorted(tensor["name"] for tensor in layer.value["tensors"]) != sorted(want):
        raise Refused(layer.file, layer.key("tensors"), "are not those of the loaded layout")


def _check_storage(fields: Fields, tensor: Mapping[str, Any]) -> None:
    """What numpy and torch could not hold; whether it is the layout's, only the program knows."""
    storage = fields.value
    if ("layout" in storage) != ("layout_kwargs" in storage):
        raise Refused(fields.file, fields.key("layout_kwargs"), "belong to a layout")
    size = BITS[tensor["dtype"]] // 8
    if "torch_dtype" in storage and _TORCH_BYTES.get(storage["torch_dtype"]) != size:
        raise Refused(fields.file, fields.key("torch_dtype"), f"cannot view {tensor['dtype']}")
    for flag in storage.get("flags", ()):
        if flag not in _FLAGS:
            raise Refused(fields.file, fields.key("flags"), "no layout has it")
    if storage.get("slack_bytes", 0) > _MAX_SLACK:
        raise Refused(fields.file, fields.key("slack_bytes"), f"more than {_MAX_SLACK}")
    if "storage_shape" not in storage and "storage_strides" not in storage:
        return
    shape, strides = storage.get("storage_shape", []), storage.get("storage_strides", [])
    last = sum((dim - 1) * step for dim, step in zip(shape, strides))
    good = (0 < len(shape) == len(strides) <= _MAX_DIMS
            and math.prod(max(dim, 1) for dim in shape) < 1 << 60
            and all(step * size < 1 << 63 for step in strides)
            and (0 in shape or last < math.prod(tensor["shape"])))
    if not good:
        raise Refused(fields.file, fields.key("storage_strides"), "do not lie in the tensor")


def _check_compression(fields: Fields) -> None:
    want = {"zstd": ["method", "level", "frame_bytes", "libzstd"], "none": ["method"]}
    good = list(fields.value) == want[fields.value["method"]] and (
        fields.value.get("frame_bytes", _FRAME_BYTES) == _FRAME_BYTES
        and fields.value.get("level", 0) < 1 << 31)
    if not good:
        raise Refused(fields.file, fields.path, "is not one that the program writes")


def _check_ascending(fields: Fields, experts: List[int], redundant: bool) -> None:
    """Redundant experts begin again with expert 0 behind the last one."""
    if any(a >= b and not (redundant and b == 0) for a, b in zip(experts, experts[1:])):
        raise Refused(fields.file, fields.key("experts"), "not in ascending order")


def _check_rank(fields: Fields, redundant: bool) -> None:
    rank = fields.value
    for index, count in (("rank", "num_ranks"), ("tp_rank", "tp_size"), ("ep_rank", "ep_size")):
        if rank[index] >= rank[count]:
            raise Refused(fields.file, fields.key(index), f"{rank[index]} of {rank[count]}")
    experts, cut = rank["experts"], rank["intermediate_range"]
    _check_ascending(fields, experts, redundant)
    if len(cut) != 2 or cut[0] > cut[1]:
        raise Refused(fields.file, fields.key("intermediate_range"), "expected [begin, end]")


def _check_sizes(fields: Fields, rank: Mapping[str, Any], held: List[int]) -> None:
    sizes = fields.value
    experts, hidden, inter = sizes["num_experts"], sizes["hidden_size"], sizes["intermediate_size"]
    padded = sizes["padded_hidden_size"], sizes["padded_intermediate_size"]
    begin, end = rank["intermediate_range"]
    if (experts != len(held) or inter != end - begin or hidden > padded[0]
            or inter > padded[1]):
        raise Refused(fields.file, fields.path, "are not those that the rank holds")
    for h, i in ((hidden, inter), padded):
        if (h == 0 or h % _BLOCK or i % _BLOCK or max(h, i) > _MAX_SIZE
                or experts * 8 * h * i * 2 >= 1 << 63):
            raise Refused(fields.file, fields.path, f"no layer has H {h}, I {i}")


def read_manifest(path: str) -> Mapping[str, Any]:
    """The JSON object, checked: its form, members, types and seal."""
    text = read_file(path)
    if len(text) > _MAX_BYTES:
        raise Refused(path, "", f"more than {_MAX_BYTES} bytes")
    at = text.rfind(_SEAL)
    if at < 0:
        raise Refused(path, "manifest_xxh3_128", "missing")
    if text[at + len(_SEAL):] != xxhash.xxh3_128(text[:at]).hexdigest().encode() + b'"\n}\n':
        raise Refused(path, "manifest_xxh3_128", "the manifest was changed after it was written")
    manifest: Mapping[str, Any] = Fields(path, parse_json(path, "", text)).value
    check_manifest(path, manifest)
    if json.dumps(manifest, indent=2, ensure_ascii=False).encode() + b"\n" != text:
        raise Refused(path, "", "is not in the form that the program writes")
    return manifest
