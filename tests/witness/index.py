"""model.safetensors.index.json: which file holds a tensor, as the hub's own indexes say it."""
from __future__ import annotations

import json
import os
from typing import Any, Mapping

from witness.fields import Refused, read_file
from witness.manifest import tensor_bytes

INDEX_NAME = "model.safetensors.index.json"


def check_index(directory: str, manifest: Mapping[str, Any]) -> None:
    """Raises Refused unless the index is, byte for byte, the one that follows from the manifest."""
    path = os.path.join(directory, INDEX_NAME)
    places, total = {}, 0
    for layer in manifest["layers"]:
        for tensor in layer["tensors"]:
            places[tensor["name"]] = layer["file"]
            total += tensor_bytes(tensor)
    names = sorted(places, key=str.encode)
    expected = {"metadata": {"total_size": total}, "weight_map": {name: places[name] for name in names}}
    if read_file(path) != json.dumps(expected, indent=2, ensure_ascii=False).encode() + b"\n":
        raise Refused(path, "", "differs from the manifest")
