"""Judges one layer file: its header, which follows from the manifest byte for byte, its zstd frames and
seek table, and the checksums of file, frames and tensors."""
from __future__ import annotations

import json
import struct
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple

import xxhash
import zstandard

from witness.fields import Refused, read_file
from witness.manifest import FORMAT_VERSION, RECIPE, STORAGE, tensor_bytes

_ALIGNMENT = 4096  # of the data
_LENGTH_BYTES = 8
_MAX_FRAME_BYTES = 64 << 20
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _loaded_metadata(manifest: Mapping[str, Any], recipe: Mapping[str, Any]) -> Dict[str, str]:
    rank, fill = manifest["rank"], manifest["model"]["scale_fill"]
    found = {"hidden_size": str(recipe["hidden_size"]),
             "intermediate_size": str(recipe["intermediate_end"] - recipe["intermediate_begin"])}
    for key in ("tp_size", "ep_size"):
        if rank[key] > 1:
            found[key] = str(rank[key])
    if fill:
        found["scale_fill"] = str(fill)
    if recipe.get("bias"):
        found["bias_dtype"] = recipe["bias"]
    return found


def _sorted(value: Any) -> Any:
    return dict(sorted(value.items(), key=lambda item: item[0].encode())) if isinstance(value, dict) else value


def _storage(storage: Mapping[str, Any]) -> Dict[str, Any]:
    full = {**storage, "layout_kwargs": storage.get("layout_kwargs") or {}}
    keys = [key for key, *_ in STORAGE if full.get(key) or (key == "layout_kwargs" and full.get("layout"))]
    return {key: _sorted(full[key]) for key in keys}


def _metadata(manifest: Mapping[str, Any], entry: Mapping[str, Any]) -> Dict[str, str]:
    """The layer file's __metadata__, in order."""
    recipe = manifest["recipes"][entry["recipe"]]
    found = {"format": "pt", "family": manifest["target"]["family"], "w13_order": recipe["w13_order"]}
    if manifest["layout"] == "loaded":
        found.update(_loaded_metadata(manifest, recipe))
    else:
        storage = {tensor["name"]: _storage(tensor["storage"]) for tensor in entry["tensors"]}
        found.update({
            "mxfp4_repack.format_version": str(FORMAT_VERSION),
            "mxfp4_repack.revision": manifest["revision"],
            "mxfp4_repack.layout": manifest["layout"],
            "mxfp4_repack.recipe": _compact({key: _sorted(recipe.get(key)) for key, *_ in RECIPE}),
            "mxfp4_repack.storage": _compact(storage)})
        if manifest.get("kernel_library"):
            found["mxfp4_repack.kernel_library"] = manifest["kernel_library"]
    return dict(sorted(found.items()))


def _header(manifest: Mapping[str, Any], entry: Mapping[str, Any]) -> bytes:
    """All bytes before the data: the size of the JSON text, and the text."""
    header: Dict[str, Any] = {"__metadata__": _metadata(manifest, entry)}
    at = 0
    for tensor in entry["tensors"]:
        end = at + tensor_bytes(tensor)
        header[tensor["name"]] = {"dtype": tensor["dtype"], "shape": tensor["shape"],
                                  "data_offsets": [at, end]}
        at = end
    text = _compact(header).encode()
    text += b" " * (-(_LENGTH_BYTES + len(text)) % _ALIGNMENT)
    return len(text).to_bytes(_LENGTH_BYTES, "little") + text


class _Frame(NamedTuple):
    encoded: bytes
    decoded_bytes: int
    checksum: int  # low half of XXH64 of the decoded bytes


def _frames(path: str, data: bytes) -> List[_Frame]:
    """The frames of a compressed file, by its seek table, which must cover the file."""
    if len(data) < 17 or data[-5:] != b"\x80" + struct.pack("<I", 0x8F92EAB1):
        raise Refused(path, "seek table", "none at the end of the file")
    count = int.from_bytes(data[-9:-5], "little")
    start = len(data) - 17 - 12 * count
    if count == 0 or start < 0 or data[start:start + 8] != struct.pack(
            "<II", 0x184D2A5E, 12 * count + 9):
        raise Refused(path, "seek table", f"{count} frames do not fit the file")
    frames, at = [], 0
    for encoded, decoded, checksum in struct.iter_unpack("<III", data[start + 8:-9]):
        if not encoded or not 0 < decoded <= _MAX_FRAME_BYTES:
            raise Refused(path, "seek table", "a frame is empty or too large")
        frames.append(_Frame(data[at:at + encoded], decoded, checksum))
        at += encoded
    if at != start:
        raise Refused(path, "seek table", f"its frames take {at} bytes, the file has {start}")
    return frames


def _decoded(path: str, number: int, frame: _Frame) -> bytes:
    def refuse(what: str) -> Refused:
        return Refused(path, f"frame {number}", what)

    # Byte 4 is the descriptor of the frame's header; its bit 2 says that a checksum ends the frame.
    if frame.encoded[:4] != _ZSTD_MAGIC or len(frame.encoded) < 9 or not frame.encoded[4] & 4:
        raise refuse("is not a zstd frame with a checksum")
    if int.from_bytes(frame.encoded[-4:], "little") != frame.checksum:
        raise refuse("its checksum is not the seek table's")
    try:
        if zstandard.frame_content_size(frame.encoded) != frame.decoded_bytes:
            raise refuse("does not state its size")
        decoder = zstandard.ZstdDecompressor().decompressobj()
        data = decoder.decompress(frame.encoded)
    except zstandard.ZstdError as error:
        raise refuse(str(error)) from None
    if decoder.unused_data or len(data) != frame.decoded_bytes:
        raise refuse("is not one frame")
    if xxhash.xxh64(data).intdigest() & 0xFFFFFFFF != frame.checksum:
        raise refuse("checksum differs")
    return bytes(data)


def _pieces(path: str, data: bytes, sizes: List[int]) -> Iterator[List[bytes]]:
    """Of a compressed file: the decoded frames of the header and of each tensor, all of `sizes`. Each of
    them begins a frame."""
    frames = iter(enumerate(_frames(path, data)))
    for size in sizes:
        parts: List[bytes] = []
        while size:
            number, frame = next(frames, (0, None))
            if frame is None or frame.decoded_bytes > size:
                raise Refused(path, "seek table", "its frames are not those of the tensors")
            parts.append(_decoded(path, number, frame))
            size -= frame.decoded_bytes
        yield parts
    if next(frames, None) is not None:
        raise Refused(path, "seek table", "more frames than the tensors fill")


def _plain_pieces(path: str, data: bytes, sizes: List[int]) -> Iterator[List[bytes]]:
    if len(data) != sum(sizes):
        raise Refused(path, "", f"{len(data)} bytes, its header and tensors take {sum(sizes)}")
    view, at = memoryview(data), 0
    for size in sizes:
        yield [view[at:at + size]]  # type: ignore[list-item]
        at += size


def check_layer(path: str, manifest: Mapping[str, Any], entry: Mapping[str, Any]) -> None:
    """Raises Refused unless every byte of the file is as the manifest says."""
    data = read_file(path)
    if len(data) != entry["size"]:
        raise Refused(path, "", f"{len(data)} bytes, {entry['size']} in the manifest")
    if xxhash.xxh3_128(data).hexdigest() != entry["xxh3_128"]:
        raise Refused(path, "", "the file's checksum differs")
    compressed = manifest["compression"]["method"] == "zstd"
    if (data[:4] == _ZSTD_MAGIC) != compressed:
        raise Refused(path, "", "the manifest says otherwise whether it is compressed")
    header = _header(manifest, entry)
    sizes = [len(header), *map(tensor_bytes, entry["tensors"])]
    pieces = (_pieces if compressed else _plain_pieces)(path, data, sizes)
    if b"".join(next(pieces)) != header:
        raise Refused(path, "header", "is not the one that follows from the manifest")
    for tensor, parts in zip(entry["tensors"], pieces):
        checksum = xxhash.xxh3_128()
        for part in parts:
            checksum.update(part)
        if checksum.hexdigest() != tensor["xxh3_128"]:
            raise Refused(path, tensor["name"], "checksum differs")
    if next(pieces, None) is not None:
        raise Refused(path, "", "more data than tensors")
