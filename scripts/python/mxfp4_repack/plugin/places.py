"""Where a loaded layer keeps a source's tensors: what it takes to fill them again in place.

Kernels, wrapped tensors and captured graphs hold addresses, so a reload that leaves them valid writes to the
same memory. Nothing here keeps a tensor alive: a place is an address, and is sought among the layer's tensors
whenever it is used.
"""
from __future__ import annotations

from typing import Any, Dict, Iterator, Mapping, NamedTuple, Set, Tuple

from mxfp4_repack.plugin.facts import Mismatch
from mxfp4_repack.plugin.live import Live
from mxfp4_repack.plugin.names import PLACES

# Modules whose objects may hold a layer's tensors.
_HOLDERS = ("triton_kernels", "vllm.model_executor.layers", "vllm.utils")
_DEEPEST = 8


class Place(NamedTuple):
    """A tensor of a source in a layer."""

    address: int
    form: Tuple[Any, ...]  # type, shape, strides, bytes, slack, flags, storage: a kernel's view of the bytes


class Places(NamedTuple):
    live: Live
    conversion: Tuple[Any, ...]  # what made the bytes, apart from the checkpoint
    tensors: Mapping[str, Place]  # by the source's names


def conversion_of(manifest: Mapping[str, Any]) -> Tuple[Any, ...]:
    return manifest["revision"], manifest["layout"], manifest["target"]


def _form(info: Any) -> Tuple[Any, ...]:
    return (info.torch_dtype, info.shape, info.strides, info.nbytes, info.slack_bytes, info.flags, dict(info.storage))


def note(layer: Any, live: Live, blob: Any, source: Any, tensors: Mapping[str, Any]) -> None:
    """Notes that `tensors` are what the layer's kernel will read."""
    setattr(layer, PLACES, Places(live, conversion_of(blob.manifest), {
        name: Place(int(tensor.data_ptr()), _form(source.info(name))) for name, tensor in tensors.items()}))


def settle(layer: Any) -> None:
    """Called once the layer is loaded: where the engine copied a tensor into its own parameter of that name, this is
    the place. A layer of which a place is not found is not reloaded in place."""
    found = getattr(layer, PLACES, None)
    if found is None:
        return
    held = {tensor.data_ptr() for tensor in tensors_of(layer)}
    tensors = dict(found.tensors)
    for name, place in tensors.items():
        own = getattr(layer, name, None)
        if place.address not in held and _fits(own, place):
            tensors[name] = place._replace(address=int(own.data_ptr()))
    setattr(layer, PLACES, found._replace(tensors=tensors))


def _fits(tensor: Any, place: Place) -> bool:
    import torch
    dtype, shape, strides = place.form[:3]
    return (isinstance(tensor, torch.Tensor) and str(tensor.dtype).rsplit(".", 1)[-1] == dtype and
            tuple(tensor.shape) == tuple(shape) and tuple(tensor.stride()) == tuple(strides))


def memory(layer: Any, places: Places, source: Any) -> Dict[str, Any]:
    """{name: uint8 tensor} of the memory that `source` has to fill. Raises Mismatch if the layer keeps its tensors
    elsewhere by now, or in another form than the source's."""
    if set(source.tensors) != set(places.tensors):
        raise Mismatch("tensors", sorted(source.tensors), sorted(places.tensors))
    held = {tensor.data_ptr(): tensor for tensor in tensors_of(layer)}
    flats = {}
    for name, place in places.tensors.items():
        if _form(source.info(name)) != place.form:
            raise Mismatch(f"form of {name}", str(_form(source.info(name))), str(place.form))
        tensor, own = held.get(place.address), getattr(layer, name, None)
        if tensor is None or _fits(own, place) and own.data_ptr() != place.address:
            raise Mismatch(f"place of {name}", "that of the first load", "another")
        flats[name] = _flat(tensor, *place.form[3:5])
    return flats


def _flat(tensor: Any, nbytes: int, slack: int) -> Any:
    """The bytes that a tensor lies in, and those behind it if they are the tensor's own."""
    import torch
    storage, begin = tensor.untyped_storage(), tensor.storage_offset() * tensor.element_size()
    room = storage.nbytes() - begin
    if room < nbytes or slack and room not in (nbytes, nbytes + slack):
        raise Mismatch("memory of a tensor", f"{nbytes} bytes", room)
    size = nbytes + slack if room == nbytes + slack else nbytes
    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage, begin, (size,), (1,))


def tensors_of(layer: Any) -> Iterator[Any]:
    """Every tensor with memory that the layer, its method or their objects hold."""
    import torch
    seen: Set[int] = set()
    todo = [(value, 0) for name, value in vars(layer).items() if name != "_modules"]
    while todo:
        value, depth = todo.pop()
        if id(value) in seen or depth > _DEEPEST:
            continue
        seen.add(id(value))
        if isinstance(value, torch.Tensor):
            if not value.is_meta:
                yield value
        elif isinstance(value, dict):
            todo += [(item, depth + 1) for item in value.values()]
        elif isinstance(value, (list, tuple)):
            todo += [(item, depth + 1) for item in value]
        elif type(value).__module__.startswith(_HOLDERS) and not isinstance(value, torch.nn.Module):
            todo += [(item, depth + 1) for item in getattr(value, "__dict__", {}).values()]
