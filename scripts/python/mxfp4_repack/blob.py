"""A blob of one rank: its manifest and its layers."""
from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import threading
from types import TracebackType
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple, Type

from mxfp4_repack.arguments import is_address, path_text, whole_number
from mxfp4_repack.errors import (
    ArgumentError, MismatchError, NotABlobError, NotFoundError, RankError, ReadError, SizeError)
from mxfp4_repack.layer import Layer
from mxfp4_repack.native import NativeBlob, NativeLayer, require_same_checkpoint
from mxfp4_repack.tensors import TensorInfo, tensor_info

MANIFEST_NAME = "mxfp4_repack.json"
INDEX_NAME = "model.safetensors.index.json"
BLOB_FOLDER = "mxfp4_repack"  # of a model directory


def _here(path: str) -> str:
    """In front of a relative path it leads to the same file later, wherever the process is then."""
    try:
        return "" if is_address(path) else os.getcwd()
    except FileNotFoundError:  # it was removed
        return ""


class Blob:
    """An open blob of one rank. A context manager.

    root: its directory; manifest: the JSON object; layers: prefixes in order; rank: its number, of
    `ranks`; digest: SHA-256 of the manifest's file, hexadecimal.
    """

    def __init__(self, root: str, native: NativeBlob, check: str) -> None:
        """`native`: the same directory, open in the library, which checked its manifest."""
        self.root, self._check, self._start = root, check, _here(root)
        self.reopen: Optional[Callable[[], Blob]] = None  # in another process
        self._native: Optional[NativeBlob] = native
        self.digest: str = hashlib.sha256(native.manifest).hexdigest()
        manifest: Mapping[str, Any] = json.loads(native.manifest)
        self.manifest = manifest
        self._compressed = manifest["compression"]["method"] == "zstd"
        self.rank, self.ranks = manifest["rank"]["rank"], manifest["rank"]["num_ranks"]
        self._entries: Dict[str, Mapping[str, Any]] = {}
        self._infos: Dict[str, List[TensorInfo]] = {}
        for entry in manifest["layers"]:
            self._add(entry)
        self.layers: Tuple[str, ...] = tuple(self._entries)

    def __enter__(self) -> "Blob":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def close(self) -> None:
        """Closes the blob: layer() raises. Open layers stay open."""
        self._native = None

    def __reduce__(self) -> Tuple[Callable[[], "Blob"], Tuple[()]]:
        """Pickled: the blob is opened again where it arrives, by an absolute path."""
        assert self.reopen is not None
        return self.reopen, ()

    def _add(self, entry: Mapping[str, Any]) -> None:
        infos: List[TensorInfo] = []
        at = 0
        for tensor in entry["tensors"]:
            infos.append(tensor_info(os.path.join(self.root, MANIFEST_NAME), tensor, entry["prefix"], at))
            at += infos[-1].nbytes
        self._entries[entry["prefix"]], self._infos[entry["prefix"]] = entry, infos

    def file_of(self, prefix: str) -> str:
        """Path of a layer's file. Raises NotFoundError."""
        if not isinstance(prefix, str) or prefix not in self._entries:
            raise NotFoundError(self.root, prefix if isinstance(prefix, str) else repr(prefix),
                                "no such layer in the blob")
        return os.path.join(self.root, self._entries[prefix]["file"])

    def entry(self, prefix: str) -> Mapping[str, Any]:
        """The manifest's object of a layer. Raises NotFoundError."""
        self.file_of(prefix)
        return self._entries[prefix]

    def recipe(self, prefix: str) -> Mapping[str, Any]:
        """What the bytes of a layer depend on. Raises NotFoundError."""
        recipe: Mapping[str, Any] = self.manifest["recipes"][self.entry(prefix)["recipe"]]
        return recipe

    def infos(self, prefix: str) -> Tuple[TensorInfo, ...]:
        """The layer's tensors, in file order, without opening its file. Raises NotFoundError."""
        self.file_of(prefix)
        return tuple(self._infos[prefix])

    def check_size(self, prefix: str) -> None:
        """Raises unless the layer's file is there with the manifest's size."""
        path, want = self.file_of(prefix), self._entries[prefix]["size"]
        if is_address(path):
            return  # the library says so when the layer is opened
        try:
            size = os.stat(os.path.join(self._start, path)).st_size
        except FileNotFoundError:
            raise NotFoundError(path, "", "missing") from None
        except OSError as error:
            raise ReadError(path, "", error.strerror or str(error)) from None
        if size != want:
            raise SizeError(path, "", f"{size} bytes, {want} in the manifest")

    def __repr__(self) -> str:
        return (f"<blob {self.root!r}: {self.manifest['layout']}, {len(self.layers)} layers, rank "
                f"{self.rank} of {self.ranks}>")

    def __getitem__(self, prefix: "str | int") -> Layer:
        """The layer as layer() opens it: `with blob[0] as layer`."""
        return self.layer(prefix)

    def __len__(self) -> int:
        return len(self.layers)

    def __iter__(self) -> Iterator[str]:
        """Prefixes, in order: no file is opened."""
        return iter(self.layers)

    def __contains__(self, prefix: object) -> bool:
        return prefix in self.layers

    def layer(self, prefix: "str | int") -> Layer:
        """Opens a layer and compares its size and header with the manifest.

        prefix: or the layer's place in `layers`, counted from the end if negative. With
        check="checksums" the whole file is read and hashed first.
        """
        if not isinstance(prefix, str):
            prefix = whole_number(prefix, self.root, "layer")
            if not -len(self.layers) <= prefix < len(self.layers):
                raise NotFoundError(self.root, f"layer {prefix}", f"of {len(self.layers)} layers")
            prefix = self.layers[prefix]
        self.check_size(prefix)
        if self._native is None:
            raise ReadError(self.root, "", "is closed")
        infos = self._infos[prefix]
        layer = Layer(NativeLayer(
            self._native, self.layers.index(prefix), self.file_of(prefix),
            [info.full_name for info in infos], [info.nbytes for info in infos], self._compressed),
            self._entries[prefix], len(self.recipe(prefix)["experts"]), infos)
        if self._check == "checksums":
            layer.check_file()
        return layer

    def check_index(self) -> None:
        """Raises unless the index beside the manifest is what follows from the manifest; a far one is not read."""
        if is_address(self.root):
            return
        path = os.path.join(self.root, INDEX_NAME)
        weight_map = {info.full_name: self._entries[prefix]["file"]
                      for prefix in self.layers for info in self._infos[prefix]}
        total = sum(info.nbytes for prefix in self.layers for info in self._infos[prefix])
        index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))}
        want = json.dumps(index, indent=2, ensure_ascii=False).encode() + b"\n"
        try:
            with open(os.path.join(self._start, path), "rb") as file:
                found = file.read(len(want) + 1)
        except FileNotFoundError:
            raise NotFoundError(path, "", "missing") from None
        except OSError as error:
            raise ReadError(path, "", error.strerror or str(error)) from None
        if found != want:
            raise MismatchError(path, "", "differs from the manifest")

    def verify(self) -> None:
        """Reads everything; raises at the first file or tensor whose checksum differs."""
        self.check_index()
        for prefix in self.layers:
            with self.layer(prefix) as layer:
                layer.check_file()
                layer.check_tensors()


def _has_manifest(directory: str) -> bool:
    path = os.path.join(directory, MANIFEST_NAME)
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise ReadError(path, "", error.strerror or str(error)) from None
    return True


def _names_in(directory: str) -> List[str]:
    """Sorted; none where there is no such directory."""
    try:
        return sorted(os.listdir(directory))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise ReadError(directory, "", error.strerror or str(error)) from None


def find_blobs(path: "os.PathLike[str] | str") -> Dict[Optional[int], str]:
    """Directories of the blobs at `path`: a blob's directory, the directory that holds the ranks'
    blobs, or a model directory.

    {None: directory} if the blob has one rank, else {rank: directory}. Raises NotABlobError if
    there is none, RankError if there are rank directories of different sets, ReadError if that
    cannot be seen.
    """
    root = path_text(path)
    if is_address(root):
        return {None: root}
    for directory in (root, os.path.join(root, BLOB_FOLDER)):
        if _has_manifest(directory):
            return {None: directory}
        matches = [m for m in (re.fullmatch(r"rank-(\d+)-of-(\d+)", n) for n in _names_in(directory)) if m]
        if len({m[2] for m in matches}) > 1:
            raise RankError(directory, "", "holds ranks of different sets")
        if matches:
            return {int(m[1]): os.path.join(directory, m[0]) for m in matches}
    raise NotABlobError(root, "", f"no {MANIFEST_NAME}: not a blob, or not finished")


def _around_experts(root: str, blob: Blob) -> bool:
    """Whether `root` is a checkpoint in whose folder the blob was found, with raw experts of its own."""
    inside = os.path.relpath(blob.root, root).split(os.sep)[0] == BLOB_FOLDER
    return inside and "rest" not in blob.manifest and any(name.endswith(".safetensors") for name in _names_in(root))


def open_blob(path: "os.PathLike[str] | str", *, rank: Optional[int] = None,
              check: str = "sizes", direct: bool = False) -> Blob:
    """Opens the blob of `rank` at `path` (see find_blobs) and checks its manifest's seal.

    rank: may be left out if `path` is one rank's blob. check: "none" opens no layer file; "sizes"
    compares the sizes of all files now; "checksums" also compares the index, and makes layer() hash
    the file. layer() always compares its file's size and header. direct: read tensors past the system's page cache, which is
    then neither asked nor filled; Layer.direct says whether that is so, since it needs a file system that
    can. A blob in the folder of a checkpoint has to be made from that checkpoint, by the sample that it keeps, unless
    check is "none". Raises a BlobError of a kind that says why.
    """
    blob = open_any_blob(path, rank, check, direct)
    root = path_text(path)
    if check != "none" and not is_address(root) and _around_experts(root, blob):
        require_same_checkpoint(root, json.dumps(blob.manifest).encode())
    return blob


def open_any_blob(path: "os.PathLike[str] | str", rank: Optional[int], check: str, direct: bool) -> Blob:
    """As open_blob(), without a look at the checkpoint around the blob."""
    root = path_text(path)
    if check not in ("none", "sizes", "checksums"):
        raise ArgumentError(root, "check", f"{check!r}, expected none, sizes or checksums")
    if not isinstance(direct, bool):
        raise ArgumentError(root, "direct", f"{direct!r}, expected True or False")
    if rank is not None:
        rank = whole_number(rank, root, "rank")
    found = find_blobs(root)
    if None in found:
        directory = found[None]
    elif rank is None:
        ranks = sorted(key for key in found if key is not None)
        raise RankError(root, "", f"holds ranks {ranks}; say which")
    elif rank not in found:
        raise RankError(root, "", f"rank {rank} is not there")
    else:
        directory = found[rank]
    if not is_address(directory) and not _has_manifest(directory):
        raise NotABlobError(directory, "", f"no {MANIFEST_NAME}: the conversion did not finish")
    blob = Blob(directory, NativeBlob(directory, os.path.join(directory, MANIFEST_NAME), direct), check)
    blob.reopen = functools.partial(open_any_blob, os.path.join(_here(directory), directory), None, check, direct)
    if rank is not None and blob.rank != rank:
        raise RankError(directory, "rank",
                        f"the blob is rank {blob.rank} of {blob.ranks}, not {rank}")
    name = re.fullmatch(r"rank-(\d+)-of-(\d+)", os.path.basename(os.path.abspath(directory)))
    if name and (int(name[1]), int(name[2])) != (blob.rank, blob.ranks):
        raise MismatchError(directory, "rank",
                            f"the manifest is of rank {blob.rank} of {blob.ranks}")
    if check != "none":
        for prefix in blob.layers:
            blob.check_size(prefix)
    if check == "checksums":
        blob.check_index()
    return blob
