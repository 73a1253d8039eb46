"""Reads the manifest, and refuses one whose content the program would not have written.

Members and types are those of mxfp4-repack-container(5); their order and spelling, and members that are not
known, do not count. The shapes and types of a layout's tensors are not checked here: only the program knows them.
"""
from __future__ import annotations

import json
import math
import re
from typing import Any, Callable, FrozenSet, List, Mapping, Tuple

import xxhash

from witness.fields import Fields, Refused, parse_json, read_file

MANIFEST_NAME = "mxfp4_repack.json"
FORMAT_VERSION = 2

_SEAL = "manifest_xxh3_128"
_MAX_BYTES = 64 << 20
_MAX_SIZE = 1 << 22  # of H and I
_MAX_TOTAL = 1 << 53  # bytes of all files and tensors
_MAX_RANKS = 1 << 16
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


def _checksum(fields: Fields, key: str) -> None:
    if not re.fullmatch("[0-9a-f]{32}", fields.get(key, str)):
        raise Refused(fields.file, fields.key(key), "expected 32 hexadecimal digits")


def _size(fields: Fields, key: str) -> None:
    fields.size(key)


def _ranks(fields: Fields, key: str) -> None:
    if fields.size(key) > _MAX_RANKS:
        raise Refused(fields.file, fields.key(key), f"more than {_MAX_RANKS} ranks")


def _byte(fields: Fields, key: str) -> None:
    if fields.size(key) > 0xFF:
        raise Refused(fields.file, fields.key(key), "not a byte")


def _flag(fields: Fields, key: str) -> None:
    fields.get(key, bool)


def _one_of(names: FrozenSet[str]) -> Rule:
    def rule(fields: Fields, key: str) -> None:
        if fields.get(key, str) not in names:
            raise Refused(fields.file, fields.key(key),
                              f"unknown value {fields.value[key]!r}")
    return rule


def _list_of(kind: type) -> Rule:
    def rule(fields: Fields, key: str) -> None:
        values = fields.get(key, list)
        if any(type(v) is not kind or (kind is int and not 0 <= v < 1 << 63) for v in values):
            raise Refused(fields.file, fields.key(key), f"expected a list of {kind.__name__}")
    return rule


def _map(rule: Rule) -> Rule:
    """An object of any keys."""
    def check(fields: Fields, key: str) -> None:
        members = fields.object(key)
        for name in members.value:
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
    """An object of these members, each (key, rule) or, if it may be absent or null, (key, rule, None)."""
    def check(fields: Fields, key: str) -> None:
        inner = fields.object(key) if key else fields
        for name, rule, *absent in members:
            if not absent or inner.value.get(name) is not None:
                if name not in inner.value:
                    inner.get(name, object)
                rule(inner, name)
    return check


def _objects(rule: Rule) -> Rule:
    def check(fields: Fields, key: str) -> None:
        for item in fields.objects(key):
            rule(item, "")
    return check


def _plain_name(fields: Fields, key: str) -> None:
    name = fields.get(key, str)
    if not name or name.startswith(".") or "/" in name or "\0" in name:
        raise Refused(fields.file, fields.key(key), "expected a plain file name")


_FAMILY = _one_of(frozenset({"gpt_oss", "generic"}))
STORAGE = (
    ("torch_dtype", _text, None), ("layout", _text, None), ("layout_name", _text, None), ("layout_kwargs", _map(_size), None),
    ("layout_init_shape", _list_of(int), None), ("storage_shape", _list_of(int), None),
    ("storage_strides", _list_of(int), None), ("logical_shape", _list_of(int), None),
    ("logical_dtype", _text, None), ("slack_bytes", _size, None), ("flags", _list_of(str), None))
RECIPE = (
    ("weights", _one_of(frozenset({"mxfp4"}))), ("layout", _text), ("parameters", _map(_text)), ("experts", _list_of(int)),
    ("hidden_size", _size), ("padded_hidden_size", _size), ("intermediate_begin", _size), ("intermediate_end", _size),
    ("padded_intermediate_size", _size), ("w13_order", _one_of(frozenset({"interleaved", "halves"}))),
    ("hidden_fill", _byte, None), ("intermediate_fill", _byte, None), ("bias", _one_of(_DTYPES), None), ("w2_bias", _flag),
    ("input_scales", _flag))
_TENSOR = (("name", _text), ("dtype", _one_of(_DTYPES)), ("shape", _list_of(int)))
_LAYER = _object(
    ("index", _size), ("prefix", _text), ("engine_prefix", _text, None),
    ("file", _plain_name), ("size", _size), ("xxh3_128", _checksum), ("recipe", _size),
    ("tensors", _objects(_object(*_TENSOR, ("xxh3_128", _checksum), ("storage", _object(*STORAGE))))),
    ("published", _object(
        ("intermediate_size", _size), ("experts", _size), ("tensors", _objects(_object(*_TENSOR))),
        ("files", _objects(_object(("file", _plain_name), ("tensors", _size)))), ("sample", _text, None)), None))
_MANIFEST = _object(
    ("format", _text), ("format_version", _size), ("tool_version", _text), ("revision", _text),
    ("engine", _one_of(frozenset({"vllm", "sglang"}))), ("vllm_commit", _text, None),
    ("parameter_names", _map(_text), None), ("layout", _text), ("kernel_library", _text, None),
    ("decision", _object(
        ("backend", _one_of(BACKENDS), None), ("experts_class", _text, None),
        ("forced", _flag), ("trace", _trace), ("notes", _list_of(str)))),
    ("asked", lambda fields, key: fields.get(key, dict) and None, None),
    ("target", _object(
        ("backend", _one_of(BACKENDS)), ("family", _one_of(frozenset({"gpt_oss", "generic"}))),
        ("platform", _one_of(frozenset({"cuda", "rocm", "xpu", "cpu", "other"}))), ("arch", _text),
        ("world_size", _ranks), ("activation", _text, None), ("knobs", _map(_text)), ("env", _map(_text)))),
    ("deployment", _object(
        ("tp_size", _size), ("pcp_size", _size), ("dp_size", _size),
        ("enable_expert_parallel", _flag), ("all2all_backend", _text), ("enable_eplb", _flag),
        ("num_redundant_experts", _size, None), ("sequence_parallel", _flag))),
    ("rank", _object(
        ("rank", _size), ("num_ranks", _ranks), ("tp_rank", _size), ("tp_size", _ranks),
        ("ep_rank", _size), ("ep_size", _ranks))),
    ("model", _object(("style", _one_of(_STYLES)), ("loader", _one_of(_LOADERS)), ("scale_fill", _byte), ("all_layers", _flag))),
    ("recipes", _objects(_object(*RECIPE))), ("layers", _objects(_LAYER)),
    ("rest", _objects(_object(("file", _plain_name), ("size", _size), ("xxh3_128", _checksum))), None),
    ("checkpoint", _object(
        ("config", _text, None), ("attributes", _map(_text), None), ("left_out", _list_of(str), None)), None),
    ("source", _object(
        ("kind", _text), ("model_type", _text, None), ("activation", _text, None),
        ("files", _objects(_object(("name", _text), ("size", _size), ("sha256", _text, None)))))),
    ("compression", _object(("method", _one_of(frozenset({"zstd", "none"}))))), ("warnings", _list_of(str)))


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
    if manifest["revision"].startswith("sglang-") != (manifest["engine"] == "sglang"):
        raise Refused(path, "engine", "is not the revision's")
    _check_compression(fields.object("compression"))
    _check_rank(fields.object("rank"))
    redundant = (manifest["deployment"].get("num_redundant_experts") or 0) > 0
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
        if layer.value["recipe"] >= len(manifest["recipes"]):
            raise Refused(path, layer.key("recipe"), "no such recipe")
        recipe = manifest["recipes"][layer.value["recipe"]]
        if recipe["layout"] != manifest["layout"]:
            raise Refused(path, layer.key("recipe"), "is of another layout")
        _check_recipe(layer, recipe, redundant)
        if manifest["layout"] == "loaded":
            _check_loaded(layer, recipe)
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
    total += sum(tensor_bytes(tensor) for layer in manifest["layers"] for tensor in layer["tensors"])
    total += sum(file["size"] for file in manifest.get("rest") or ())
    if total > _MAX_TOTAL:
        raise Refused(path, "layers", "their sizes add up to more than 2^53 bytes")


def _check_loaded(layer: Fields, recipe: Mapping[str, Any]) -> None:
    """The loaded layout has no other tensors than the slots that the recipe states."""
    slots = ["w13_weight", "w2_weight", "w13_weight_scale", "w2_weight_scale"]
    slots += ["w13_bias", "w2_bias"] if recipe.get("bias") is not None else []
    slots += ["w13_input_scale", "w2_input_scale"] if recipe["input_scales"] else []
    want = [layer.value["prefix"] + "." + slot for slot in slots]
    if sorted(tensor["name"] for tensor in layer.value["tensors"]) != sorted(want):
        raise Refused(layer.file, layer.key("tensors"), "are not those of the loaded layout")


def _check_storage(fields: Fields, tensor: Mapping[str, Any]) -> None:
    """What numpy and torch could not hold; whether it is the layout's, only the program knows."""
    storage = {key: value for key, value in fields.value.items() if value}
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
    if fields.value["method"] == "zstd":
        fields.get("libzstd", str)
        if fields.size("level") >= 1 << 31:
            raise Refused(fields.file, fields.key("level"), "is too large")


def _check_rank(fields: Fields) -> None:
    rank = fields.value
    for index, count in (("rank", "num_ranks"), ("tp_rank", "tp_size"), ("ep_rank", "ep_size")):
        if rank[index] >= rank[count]:
            raise Refused(fields.file, fields.key(index), f"{rank[index]} of {rank[count]}")


def _check_recipe(layer: Fields, recipe: Mapping[str, Any], redundant: bool) -> None:
    def refuse(what: str) -> Refused:
        return Refused(layer.file, layer.key("recipe"), what)

    experts, hidden = recipe["experts"], recipe["hidden_size"]
    # Redundant experts begin again with expert 0 behind the last one.
    if any(a >= b and not (redundant and b == 0) for a, b in zip(experts, experts[1:])):
        raise refuse("experts not in ascending order")
    inter = recipe["intermediate_end"] - recipe["intermediate_begin"]
    padded = recipe["padded_hidden_size"], recipe["padded_intermediate_size"]
    if inter < 0 or hidden > padded[0] or inter > padded[1]:
        raise refuse("sizes are not those that the rank holds")
    for h, i in ((hidden, inter), padded):
        if (h == 0 or h % _BLOCK or i % _BLOCK or max(h, i) > _MAX_SIZE
                or len(experts) * 8 * h * i * 2 >= 1 << 63):
            raise refuse(f"no layer has H {h}, I {i}")
    for key, has_padding in (("hidden_fill", hidden != padded[0]), ("intermediate_fill", inter != padded[1])):
        if (recipe.get(key) is not None) != has_padding:
            raise refuse(f"{key} does not fit the sizes")
    if recipe["w2_bias"] and recipe.get("bias") is None:
        raise refuse("w2_bias without a bias")


def tensor_bytes(tensor: Mapping[str, Any]) -> int:
    return math.prod(tensor["shape"]) * BITS[tensor["dtype"]] // 8


def read_manifest(path: str) -> Mapping[str, Any]:
    """The JSON object, checked: its members, types and seal."""
    text = read_file(path)
    if len(text) > _MAX_BYTES:
        raise Refused(path, "", f"more than {_MAX_BYTES} bytes")
    manifest = Fields(path, parse_json(path, "", text)).value
    check_manifest(path, manifest)
    seal = Fields(path, manifest).get(_SEAL, str)
    content = {key: value for key, value in manifest.items() if key != _SEAL}
    said = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    if seal != xxhash.xxh3_128(said.encode()).hexdigest():
        raise Refused(path, _SEAL, "the manifest was changed after it was written")
    return manifest
