"""Makes small layers of random bytes, and converts them with vLLM's converter and with the program.

The bytes are splitmix64's, by seed, as in the project's golden data. The results of both are compared
as digests: a tensor's type, its shape as it lies in memory, and the SHA-256 of its bytes.
"""
from __future__ import annotations

import glob
import hashlib
import inspect
import json
import os
import shutil
import struct
import subprocess
import types
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

import numpy

GAMMA = 0x9E3779B97F4A7C15
TENSORS = ("w13_weight", "w2_weight", "w13_weight_scale", "w2_weight_scale", "w13_bias", "w2_bias",
           "w13_input_scale", "w2_input_scale")
RESULTS = TENSORS[:6]
# What a converter leaves in the layer beside its results.
LEFT = ("w13_weight_scale_2", "w2_weight_scale_2", "w13_global_scale", "w2_global_scale")
FUNCTIONS = {"gpt_oss": "convert_gpt_oss_weight_to_mxfp4_moe_kernel_format",
             "generic": "convert_weight_to_mxfp4_moe_kernel_format"}
PREFIX = "layers.0.experts."
# torch's types as a layer file names them.
TYPES = {"uint8": "U8", "int32": "I32", "bfloat16": "BF16", "float16": "F16", "float32": "F32",
         "float8_e4m3fn": "F8_E4M3", "float8_e8m0fnu": "U8", "float4_e2m1fn_x2": "U8", "int4": "U8"}

# Backends whose methods load input scales.
SCALED_INPUTS = ("EMULATION", "AITER_MXFP4_FP8")

# platform, arch, backend, family, seed, E, H, I, bias; and variants, among them "checkpoint" and
# "user", the keys of activations that each of them states, and "told", what the converter gets
# beside them.
Row = Mapping[str, Any]
Digest = List[Any]       # [type, shape, SHA-256]


def stream(seed: int, count: int) -> Any:
    """`count` bytes of splitmix64 from a seed."""
    k = numpy.arange(1, (count + 7) // 8 + 1, dtype=numpy.uint64)
    with numpy.errstate(over="ignore"):
        z = numpy.uint64(seed) + k * numpy.uint64(GAMMA)
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        z = z ^ (z >> numpy.uint64(31))
    return z.astype("<u8").view(numpy.uint8)[:count].copy()


def drawn(row: Row) -> Dict[str, Tuple[str, Any]]:
    """name -> (type, array of its bits): typical scales, or every one up to 252 with every largest
    code of a group, by `scale_mode`; and uniform input scales."""
    seed, experts, hidden, inter = (row[key] for key in ("seed", "E", "H", "I"))

    def draw(name: str, count: int) -> Any:
        return stream(seed * 16 + TENSORS.index(name), count)
    made: Dict[str, Tuple[str, Any]] = {}
    shapes = {"w13_weight": (experts, 2 * inter, hidden // 2),
              "w2_weight": (experts, hidden, inter // 2),
              "w13_weight_scale": (experts, 2 * inter, hidden // 32),
              "w2_weight_scale": (experts, hidden, inter // 32)}
    for name, shape in shapes.items():
        raw = draw(name, int(numpy.prod(shape)))
        every = row.get("scale_mode") == "every"
        bits = raw
        if name.endswith("scale"):
            bits = numpy.arange(raw.size) // 8 % 253 if every else 112 + (raw & 31)
        elif every:  # of each group of 32 codes another largest one
            count = (numpy.arange(raw.size) // 16 % 8 + 1).astype(numpy.uint8)
            bits = raw & 0x88 | (raw >> 4 & 7) % count << 4 | (raw & 7) % count
        bits = bits.astype(numpy.uint8)
        made[name] = ("U8", bits.reshape(shape))
    biases = {"w13_bias": (experts, 2 * inter), "w2_bias": (experts, hidden)}
    for name, pair in biases.items() if row["bias"] else ():
        x = draw(name, 2 * int(numpy.prod(pair))).view("<u2")
        bits = (x & 0x8000) | ((120 + ((x >> 7) & 7)) << 7) | (x & 0x7F)
        made[name] = ("BF16", bits.astype("<u2").reshape(pair))
    for name in TENSORS[6:] if row["backend"] in SCALED_INPUTS else ():
        x = draw(name, 4 * experts).view("<u4")
        bits = ((118 + ((x >> 23) & 7)) << 23) | (x & 0x7FFFFF)
        made[name] = ("F32", numpy.full(experts, bits[0]).astype("<u4"))
    return made


# --- vLLM's side ---

def as_torch(torch: Any, tensors: Mapping[str, Tuple[str, Any]], device: str) -> Dict[str, Any]:
    views = {"BF16": ("<i2", torch.bfloat16), "F32": ("<i4", torch.float32)}
    made = {}
    for name, (dtype, bits) in tensors.items():
        signed, view = views.get(dtype, ("u1", torch.uint8))
        made[name] = torch.from_numpy(bits.view(signed).copy()).view(view).to(device)
    return made


def layer_of(torch: Any, tensors: Mapping[str, Any], activation: Any, row: Row) -> Any:
    """A stand-in for a layer of experts, with the attributes that the converters read."""
    layer: Any = torch.nn.Module()
    for name, tensor in tensors.items():
        layer.register_parameter(name, torch.nn.Parameter(tensor, requires_grad=False))
    experts, rows, packed = tensors["w13_weight"].shape
    layer.params_dtype = getattr(torch, row.get("params_dtype", "bfloat16"))
    layer.activation, layer.layer_name = activation, "model.layers.0.mlp.experts"
    layer.local_num_experts = layer.num_experts = layer.global_num_experts = experts
    layer.hidden_size = packed * 2
    layer.intermediate_size_per_partition = layer.intermediate_size = rows // 2
    parallel = types.SimpleNamespace(tp_size=row.get("tp_size", 1), tp_rank=0, ep_size=1)
    layer.moe_config = types.SimpleNamespace(
        num_experts=experts, num_local_experts=experts, hidden_dim=packed * 2,
        has_bias="w2_bias" in tensors, in_dtype=layer.params_dtype, is_act_and_mul=True,
        intermediate_size_per_partition=rows // 2, activation=activation,
        moe_parallel_config=parallel)
    return layer


def digest(tensor: Any) -> Digest:
    import torch

    # An axis of one element has any stride.
    order = list(range(tensor.dim())) if tensor.is_contiguous() else sorted(
        range(tensor.dim()), key=lambda i: (-tensor.stride(i), i))
    stored = tensor.detach().permute(order).contiguous() if tensor.dim() else tensor.detach()
    raw = stored.cpu().reshape(-1).view(torch.uint8).numpy().tobytes()
    name = str(tensor.dtype).rsplit(".", 1)[-1]
    return [TYPES.get(name, name), list(stored.shape), hashlib.sha256(raw).hexdigest()]


def described(value: Any) -> Optional[Digest]:
    """The digest of a tensor, a tensor of triton_kernels, or a precision config that holds one."""
    import torch

    if value is None or isinstance(value, torch.Tensor):
        return None if value is None else digest(value)
    for name in ("weight_scale", "b_mx_scale"):
        if getattr(value, name, None) is not None:
            return described(getattr(value, name))
    return digest(value.storage.data)


def converted(selectors: Any, row: Row, device: str = "cpu") -> Dict[str, Digest]:
    """What vLLM's converter makes of the row's layer. Raises what the converter raises."""
    torch = selectors.torch
    activation = selectors.activation.from_str(
        row.get("activation") or ("swigluoai" if row["family"] == "gpt_oss" else "silu"))
    layer = layer_of(torch, as_torch(torch, drawn(row), device), activation, row)
    convert = getattr(selectors.oracle, FUNCTIONS[row["family"]])
    told = {"activation_key": selectors.key(row["checkpoint"])} if row.get("checkpoint") else {}
    told.update(row.get("told", {}))
    if row.get("activation") and "activation" in inspect.signature(convert).parameters:
        told["activation"] = activation
    result = convert(mxfp4_backend=selectors.oracle.Mxfp4MoeBackend[row["backend"]], layer=layer,
                     _cache_permute_indices={}, **told,
                     **{name: getattr(layer, name, None) for name in RESULTS})
    made = {name: described(value) for name, value in zip(RESULTS, result)}
    made.update((name, described(getattr(layer, name, None))) for name in LEFT)
    return {name: value for name, value in made.items() if value is not None}


# --- the program's side ---

def write_loaded(path: str, row: Row) -> None:
    """The row's tensors as an input of style `loaded`."""
    header: Dict[str, Any] = {"__metadata__": {"family": row["family"]}}
    at, parts = 0, []
    for name, (dtype, bits) in drawn(row).items():
        header[PREFIX + name] = {"dtype": dtype, "shape": list(bits.shape),
                                 "data_offsets": [at, at + bits.nbytes]}
        parts.append(bits.tobytes())
        at += bits.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


def read_digests(path: str) -> Dict[str, Digest]:
    with open(path, "rb") as file:
        raw = file.read()
    (size,) = struct.unpack("<Q", raw[:8])
    made = {}
    for name, entry in json.loads(raw[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            made[name.replace(PREFIX, "")] = [entry["dtype"], entry["shape"],
                                              hashlib.sha256(raw[begin:end]).hexdigest()]
    return made


def flags_of(row: Row, revision: str) -> List[str]:
    made = ["--backend", row["backend"], "--family", row["family"], "--platform", row["platform"],
            "--revision", revision, "--pad", "none", "--compress", "none", "--quiet"]
    made += ["--arch", row["arch"]] if row["arch"] else []
    made += ["--activation", row["activation"]] if row.get("activation") else []
    # What a generic checkpoint says of activations is not in a loaded input: the knob tells it.
    asks = row.get("user") and row["family"] == "gpt_oss"
    made += ["--quantization-config", json.dumps({"moe": {"activation": row["user"]}})] if asks else []
    for knob in ("tp_size", "params_dtype", "cuda_compiler", "aiter_weight", *(() if asks else ("humming_input_dtype",))):
        made += ["--knob", f"{knob}={row[knob]}"] if knob in row else []
    for name, value in row.get("env", {}).items():
        made += ["--env", f"{name}={value}"]
    return made


def packed(program: str, folder: str, row: Row, revision: str) -> Union[Dict[str, Digest], str]:
    """What the program packs of the row's layer, or its error line."""
    source, out = os.path.join(folder, "in.safetensors"), os.path.join(folder, "out")
    write_loaded(source, row)
    shutil.rmtree(out, ignore_errors=True)
    ran = subprocess.run([program, "convert", source, "-o", out, *flags_of(row, revision)],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if ran.returncode:
        lines = ran.stderr.splitlines()
        return next((line for line in lines if "error:" in line), ran.stderr.strip())
    (path,) = glob.glob(os.path.join(out, "layer-*.safetensors"))
    return read_digests(path)
