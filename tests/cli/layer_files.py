"""Safetensors in a few lines, independent of the program: reads what it wrote, writes inputs."""
import json
import os
import shutil
import struct
import subprocess

import numpy

DTYPES = {"U8": "u1", "I8": "i1", "U16": "u2", "BF16": "u2", "F16": "f2", "F32": "f4", "I32": "i4", "I64": "i8",
          "F8_E4M3": "u1", "F8_E8M0": "u1", "F4": "u1"}


def file_bytes(path):
    """The safetensors file inside; zstd's own program decodes."""
    if path.endswith(".zst"):
        return subprocess.run(["zstd", "-dcq", path], check=True, stdout=subprocess.PIPE).stdout
    with open(path, "rb") as file:
        return file.read()


def parse(data):
    """({name: array}, metadata); asserts that the file is valid and tiles."""
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + length].decode("utf-8"))
    metadata = header.pop("__metadata__", {})
    assert all(isinstance(v, str) for v in metadata.values()), "metadata"
    assert (8 + length) % 8 == 0, "alignment"
    body = memoryview(data)[8 + length:]
    tensors, at = {}, 0
    for name, info in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = info["data_offsets"]
        assert begin == at, name + ": gap or overlap"
        at = end
        array = numpy.frombuffer(body[begin:end], dtype="<" + DTYPES[info["dtype"]])
        tensors[name] = array.reshape(info["shape"])
    assert at == len(body), "bytes after the last tensor"
    return tensors, metadata


def read(path):
    return parse(file_bytes(path))


def write(path, tensors, metadata=None):
    """tensors: {name: (dtype name, array of any type of that width)}."""
    header, at = {}, 0
    if metadata:
        header["__metadata__"] = metadata
    for name, (dtype, array) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(array.shape),
                        "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, array in tensors.values():
            file.write(numpy.ascontiguousarray(array).tobytes())


def gpt_oss_config(layers, experts, hidden, inter):
    return {"architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "hidden_size": hidden,
            "intermediate_size": inter, "num_hidden_layers": layers, "num_local_experts": experts,
            "num_experts_per_tok": 4, "swiglu_limit": 7.0,
            "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": []}}


def gpt_oss_layer(layer, experts, hidden, inter, random):
    """One layer's expert tensors as a hub checkpoint names them, random bytes, sane scales."""
    prefix = f"model.layers.{layer}.mlp.experts."
    codes = lambda *shape: ("U8", random.integers(0, 256, shape, dtype="u1"))
    scales = lambda *shape: ("U8", random.integers(118, 126, shape, dtype="u1"))
    bias = lambda *shape: ("BF16", random.integers(0x3C00, 0x3F00, shape, dtype="u2"))
    return {prefix + "gate_up_proj_blocks": codes(experts, 2 * inter, hidden // 32, 16),
            prefix + "gate_up_proj_scales": scales(experts, 2 * inter, hidden // 32),
            prefix + "gate_up_proj_bias": bias(experts, 2 * inter),
            prefix + "down_proj_blocks": codes(experts, hidden, inter // 32, 16),
            prefix + "down_proj_scales": scales(experts, hidden, inter // 32),
            prefix + "down_proj_bias": bias(experts, hidden)}


def experts(module, count, hidden, inter, words=("gate_proj", "up_proj", "down_proj"), codes=".weight", scale=".weight_scale", kinds=("U8", "U8"),
            low=101, high=140, random=None):
    """One layer's experts, each by itself: names, types and the range of the scales as given."""
    random, out = random or numpy.random.default_rng(7), {}
    for expert in range(count):
        for word, rows, columns in zip(words, (inter, inter, hidden), (hidden, hidden, inter)):
            out[f"{module}.{expert}.{word}{codes}"] = kinds[0], random.integers(0, 256, (rows, columns // 2), dtype="u1")
            out[f"{module}.{expert}.{word}{scale}"] = kinds[1], random.integers(low, high, (rows, columns // 32), dtype="u1")
    return out


def make_gpt_oss(directory, layers, experts, hidden, inter, seed=1):
    """A checkpoint of one file."""
    os.makedirs(directory, exist_ok=True)
    random = numpy.random.default_rng(seed)
    tensors = {"model.embed_tokens.weight": ("BF16", numpy.zeros((8, 32), "u2"))}
    for layer in range(layers):
        tensors.update(gpt_oss_layer(layer, experts, hidden, inter, random))
    write(os.path.join(directory, "model.safetensors"), tensors)
    with open(os.path.join(directory, "config.json"), "w") as file:
        json.dump(gpt_oss_config(layers, experts, hidden, inter), file)


def cut(path):
    os.truncate(path, os.path.getsize(path) // 2)


def grow(path):
    with open(path, "ab") as file:
        file.write(b"more")


def replace(path):
    shutil.copy(path, path + ".new")
    os.utime(path + ".new", ns=(1, 1))
    os.replace(path + ".new", path)


CHANGES = (cut, grow, replace, os.remove)  # what may happen to a file that was read
