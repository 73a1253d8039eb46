"""Blobs that the engine does not want, for row.py, and how a load answers each of them in two ways.

Where only the blob is allowed, the state is vLLM's own and a line names the fact, or a named error does. Where the checkpoint is allowed too, the
weights are made from it: the state is vLLM's own, and no layer comes from the blob. No layer is mixed, and nothing stays in memory.
"""
import json
import os
import pathlib
import shutil

import engine
import row
from processes import forked
from row import blob, checkpoint, is_error, packed, program, report

WAYS = {"only the blob": {"source": "blob"}, "blob or checkpoint": {}}
# The layers that fit all the same.
STILL_FIT = {"one layer is not there": 2}
KEPT = 1 << 16  # bytes that a load may leave in memory beyond vLLM's own


def sealed(directory, change):
    """A copy of a blob whose manifest is changed and sealed again."""
    from mxfp4_repack import xxh3_128

    def seal(path):
        manifest = json.loads((path / "mxfp4_repack.json").read_text())
        del manifest["manifest_xxh3_128"]
        text = json.dumps(manifest)
        edited = json.loads(change(text))
        assert edited != manifest, "nothing was changed"
        edited["manifest_xxh3_128"] = xxh3_128(json.dumps(edited, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode())
        (path / "mxfp4_repack.json").write_text(json.dumps(edited))
    return replaced(directory, seal)


def replaced(directory, change):
    """A copy of a blob, changed by change(path of the copy)."""
    name = f"edited-{len(os.listdir('.'))}"
    shutil.copytree(directory, name)
    change(pathlib.Path(name))
    return os.path.abspath(name)


def edited(directory, old, new):
    return sealed(directory, lambda text: text.replace(old, new))


def first_layer(path):
    return sorted(path.glob("layer-*"))[1]


def flip(path):
    (layer,) = path.glob("layer-00001*")
    data = bytearray(layer.read_bytes())
    data[len(data) // 2] ^= 1
    layer.write_bytes(data)


def unsealed(path):
    manifest = path / "mxfp4_repack.json"
    manifest.write_text(manifest.read_text().replace('"arch": "sm90"', '"arch": "sm80"'))


def grown(directory):
    """Another checkpoint of the same shapes: its files have other sizes."""
    path = sorted(pathlib.Path(directory).glob("model-*.safetensors"))[-1]
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    path.write_bytes((length + 8).to_bytes(8, "little") + data[8:8 + length] + b" " * 8 + data[8 + length:])
    return directory


def unfinished():
    if not os.path.exists("m-part"):
        program("convert", "model", "-o", "m-part", "-q", "--arch", "sm90", "--moe-backend", "triton", "--revision", row.REVISION, "--shard", "0/2")
    return os.path.abspath("m-part")


def misfits():
    """(what differs, blob, more arguments of the engine)"""
    right = blob("triton-sm90-zstd")
    yield "tensor parallel size", blob("m-tp2", "--tp-size", "2"), {}
    yield "checkpoint with more layers", blob("m-deep", source=checkpoint("deep", "--layers", "4")), {}
    yield "number of experts", blob("m-experts", source=checkpoint("few", "--experts", "4")), {}
    yield "hidden size", blob("m-hidden", source=checkpoint("wide", "--hidden", "384")), {}
    yield "loaded layout", blob("m-loaded", "--emit", "loaded"), {}
    yield "family in the manifest", edited(right, '"family": "gpt_oss"', '"family": "generic"'), {}
    # A fine-tune: files of equal names and sizes, whatever is checked of the blob.
    for check in "none", "sizes", "checksums":
        yield f"another model, {check}", right, {"model": checkpoint("twin", seed=5), **packed(right, check=check)}
    yield "files of the checkpoint", right, {"model": grown(checkpoint("other", seed=3))}
    yield "a layer's file is shorter", replaced(right, lambda path: os.truncate(first_layer(path), 5000)), {}
    yield "a byte in a frame", replaced(right, flip), {}
    yield "no blob", os.path.abspath("nothing"), {}
    yield "architecture", blob("m-sm100", arch="sm100"), {}
    yield "backend of the blob", blob("m-marlin", backend="marlin"), {}
    yield "backend of the engine", right, {"moe_backend": "marlin"}
    yield "expert parallel size", blob("m-ep2", "--tp-size", "2", "--enable-expert-parallel"), {}
    yield "intermediate size", blob("m-inter", source=checkpoint("broad", "--intermediate", "416")), {}
    yield "an empty directory", replaced(right, lambda path: [file.unlink() for file in path.iterdir()]), {}
    yield "manifest without its seal", replaced(right, unsealed), {}
    yield "platform in the manifest", edited(right, '"platform": "cuda"', '"platform": "rocm"'), {}
    yield "prefix of a layer", edited(right, '"prefix": "model.layers.1.mlp.experts"', '"prefix": "model.layers.7.mlp.experts"'), {}
    yield "a layer's file is gone", replaced(right, lambda path: first_layer(path).unlink()), {}
    yield "an unfinished conversion", unfinished(), {}
    yield "how vLLM reads the rest", right, packed(right, load_format="dummy")
    yield "one layer is not there", blob("m-two", "--layers", "0-1"), {}


def check(load):
    """Judges each misfit in both ways; load(arguments) loads."""
    own = {}
    for what, directory, arguments in misfits():
        # Options of the loader belong to the load with the blob; weights that nobody reads are not compared.
        plain = {key: value for key, value in arguments.items() if key not in ("load_format", "model_loader_extra_config")}
        extra = {key: value for key, value in arguments.get("model_loader_extra_config", {}).items() if key != "blob"}
        key = json.dumps(plain, sort_keys=True)
        if key not in own:
            own[key] = forked(load, plain)
        for way, source in WAYS.items():
            result = forked(load, {**plain, **packed(directory, **source, **extra)})
            judge(f"mismatch, {what}, {way}", result, own[key], not source, STILL_FIT.get(what, 0), not extra)


def judge(what, result, own, made, still_fit, compared):
    if is_error(own):
        return report(f"{what}: vLLM's own load", False, own)
    if is_error(result):
        return report(f"{what}: {result[1]}: {result[2][-150:]}", result[1] in ("BlobRefused", "BlobError") and "mxfp4-repack" in result[2], result)
    lines = result["lines"]
    from_blob = sum(": taken from " in line for line in lines)
    reasons = [line for line in lines if any(words in line for words in ("vLLM converts", "not what", "the blob does not fit", "is not used"))]
    differing, kept = (engine.differing(own["state"], result["state"]), result["bytes"] - own["bytes"]) if compared else ([], 0)
    others = sum(": made from " in line for line in lines)
    said = reasons[-1].split(": ", 2)[-1][:150] if reasons else "no line that says why"
    report(f"{what}: {from_blob} layers from the blob, {others} made, {len(differing)} differ: {said}",
           from_blob == still_fit and reasons and not differing and kept <= KEPT and (made or not others), (kept, differing[:3], lines))
