"""Makes the header of a layer file, which follows from the manifest byte for byte."""
from __future__ import annotations

import json
from typing import Any, Dict, Mapping, Sequence

from mxfp4_repack.manifest import FORMAT_VERSION
from mxfp4_repack.tensors import TensorInfo

_ALIGNMENT = 4096  # of the data
_LENGTH_BYTES = 8


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _loaded_metadata(manifest: Mapping[str, Any], sizes: Mapping[str, Any]) -> Dict[str, str]:
    rank, fill = manifest["rank"], manifest["model"]["scale_fill"]
    found = {"hidden_size": str(sizes["hidden_size"]),
             "intermediate_size": str(sizes["intermediate_size"])}
    for key in ("tp_size", "ep_size"):
        if rank[key] > 1:
            found[key] = str(rank[key])
    if fill:
        found["scale_fill"] = str(fill)
    if sizes["bias"]:
        found["bias_dtype"] = sizes["bias"]
    return found


def metadata(manifest: Mapping[str, Any], entry: Mapping[str, Any],
             infos: Sequence[TensorInfo]) -> Dict[str, str]:
    """The layer file's __metadata__, in order."""
    found = {"format": "pt", "family": manifest["target"]["family"],
             "w13_order": manifest["model"]["w13_order"]}
    if manifest["layout"] == "loaded":
        found.update(_loaded_metadata(manifest, entry["sizes"]))
    else:
        found.update({
            "mxfp4_repack.format_version": str(FORMAT_VERSION),
            "mxfp4_repack.revision": manifest["revision"],
            "mxfp4_repack.layout": manifest["layout"],
            "mxfp4_repack.target": _compact(manifest["target"]),
            "mxfp4_repack.rank": _compact(manifest["rank"]),
            "mxfp4_repack.sizes": _compact(entry["sizes"]),
            "mxfp4_repack.storage": _compact({info.full_name: info.storage for info in infos})})
        if "kernel_library" in manifest:
            found["mxfp4_repack.kernel_library"] = manifest["kernel_library"]
    return dict(sorted(found.items()))


def header_text(manifest: Mapping[str, Any], entry: Mapping[str, Any],
                infos: Sequence[TensorInfo]) -> bytes:
    """The JSON text between the file's first 8 bytes, which hold the text's size, and the data."""
    header: Dict[str, Any] = {"__metadata__": metadata(manifest, entry, infos)}
    for info in infos:
        header[info.full_name] = {"dtype": info.file_dtype, "shape": list(info.file_shape),
                                  "data_offsets": [info.offset, info.offset + info.nbytes]}
    text = _compact(header).encode()
    return text + b" " * (-(_LENGTH_BYTES + len(text)) % _ALIGNMENT)
