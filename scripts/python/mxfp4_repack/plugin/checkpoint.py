"""Finds the blob's layer for a layer of the engine, and checks that it was made from the engine's checkpoint.

A fine-tune has the names and sizes of its base: what is compared behind these are samples of the experts' bytes,
which the library takes and the blob keeps.
"""
from __future__ import annotations

import functools
import json
import os
import re
from typing import Any, Callable, Mapping, Optional, Sequence, Tuple

from mxfp4_repack.blob import MANIFEST_NAME
from mxfp4_repack.errors import BlobError
from mxfp4_repack.native import require_same_checkpoint
from mxfp4_repack.plugin.facts import Mismatch
from mxfp4_repack.plugin.live import Origin


def find_layer(entries: Sequence[Mapping[str, Any]], layer_name: str) -> Mapping[str, Any]:
    """The manifest's entry of this layer. Raises Mismatch unless exactly one fits the name."""
    names = [_plain_name(entry.get("engine_prefix") or entry["prefix"]) for entry in entries]
    keys: Tuple[Callable[[str], str], ...] = (str, _words, _tail)
    for key in keys:
        name = key(_plain_name(layer_name))
        found = [entry for entry, other in zip(entries, names) if key(other) == name]
        if len(found) == 1:
            return found[0]
        if found:
            raise Mismatch("layer", ", ".join(entry["prefix"] for entry in found), layer_name)
    raise Mismatch("layer", "none of this name", layer_name)


def _plain_name(name: str) -> str:
    """Without what engines add to a name. DeepSeek-V4's published `ffn` is `mlp` in SGLang."""
    parts = name.split(".")
    if parts[-1] == "routed_experts":
        parts.pop()
    return ".".join("mlp" if part == "ffn" else part for part in parts if part != "base_layer")


def _words(name: str) -> str:
    """The words of a name, whatever their order, and its numbers in their order: `model.language_model` is
    `language_model.model` in vLLM. A draft's layer has others, `mtp.layers.0`, and may have the same tail."""
    parts = name.split(".")
    return ".".join(sorted(part for part in parts if not part.isdigit()) + [part for part in parts if part.isdigit()])


def _tail(name: str) -> str:
    """The name from the last list of layers on: wrappers prepend different names."""
    parts = name.split(".")
    starts = [i for i, part in enumerate(parts) if part in ("layers", "h", "block", "blocks")]
    return ".".join(parts[starts[-1]:]) if starts else name


def model_directory(origin: Origin) -> Optional[str]:
    """Where the checkpoint's files are, if they are on this machine."""
    if os.path.isdir(origin.model):
        return origin.model
    try:
        from huggingface_hub import try_to_load_from_cache
        file = try_to_load_from_cache(origin.model, "config.json", cache_dir=origin.download_dir,
                                      revision=origin.revision)
    except Exception:  # not installed, or not the name of a repository
        return None
    return os.path.dirname(file) if isinstance(file, str) else None


@functools.lru_cache(maxsize=None)
def lacks_raw_experts(directory: Optional[str]) -> bool:
    """Whether `directory` is a model directory of `convert --include-rest`: a blob and the tensors
    that are no raw experts."""
    if directory is None or not os.path.isdir(os.path.join(directory, "mxfp4_repack")):
        return False
    try:
        with open(os.path.join(directory, "model.safetensors.index.json")) as file:
            names = json.load(file)["weight_map"]
    except (OSError, ValueError, KeyError):
        return False  # --include-rest writes one
    return not any(is_raw_name(name.rpartition(".experts.")[2]) for name in names)


# Names below a layer's prefix: of one expert, of all experts together, and as engines load them.
_RAW_NAME = re.compile(
    r"\d+\.(w1|w2|w3|gate_proj|up_proj|down_proj)\.(weight|weight_packed|scale|weight_scale(_inv)?|bias)"
    r"|(gate_up_proj|down_proj)(_blocks|_scales|_bias|\.weight|\.weight_scale|\.bias)"
    r"|(w13|w2)_(weight|weight_scale|bias)")


def is_raw_name(name: str) -> bool:
    """Whether conversion reads the tensor of this name, which is without the layer's prefix.

    False for input scales: the engine needs them.
    """
    return _RAW_NAME.fullmatch(name) is not None


def compare_source(manifest: Mapping[str, Any], root: str, origin: Origin) -> None:
    """Raises Mismatch unless the model that the engine loads is the converted one: by its files' names and sizes,
    and then by their bytes. Without raw experts there is nothing to sample, and the blob is the one inside."""
    directory = model_directory(origin)
    if directory is None:
        raise Mismatch("checkpoint", "the files that it was made from",
                       f"{origin.model}, which is no directory here")
    if lacks_raw_experts(directory):
        inside = os.path.realpath(os.path.join(directory, "mxfp4_repack"))
        if os.path.commonpath([inside, os.path.realpath(root)]) != inside:
            raise Mismatch("checkpoint", root, f"{directory}, which has another blob")
        expected = [(item["file"], item["size"]) for item in manifest.get("rest", ())]
    else:
        expected = [(item["name"], item["size"]) for item in manifest["source"]["files"]]
    # A user may edit config.json; the sizes that it gives are compared as facts.
    weights = [(n, s) for n, s in expected if not n.endswith(".json")]
    for name, size in weights:
        try:
            found: Any = os.path.getsize(os.path.join(directory, name))
        except OSError:
            found = "no such file"
        if found != size:
            raise Mismatch("checkpoint", f"{name} of {size} bytes", f"{found} in {directory}")
    if lacks_raw_experts(directory):
        return
    if not weights:
        raise Mismatch("checkpoint", "no file of weights", directory)
    try:
        require_same_checkpoint(directory, json.dumps(manifest).encode())
    except BlobError as error:
        raise Mismatch("checkpoint", str(error)) from None


def refuse_foreign(found: str, root: str, origin: Origin) -> None:
    """Raises Mismatch for a blob that nobody named, if it belongs to another user than this one, root or the model's
    owner: others who may write beside a model would have theirs served. found: where it was found; root: its own
    directory, there or below."""
    directory = model_directory(origin)
    owners = {0, os.geteuid()} | ({os.stat(directory).st_uid} if directory else set())
    around = () if os.path.samefile(root, found) else (os.path.dirname(root),)
    for path in (found, *around, root, os.path.join(root, MANIFEST_NAME)):
        owner = os.stat(path).st_uid
        if owner not in owners:
            raise Mismatch("owner", f"{path} belongs to user {owner}: name the blob if it is to be used")
