"""Weights that a trainer sends into a running model: reload_weights() with an iterator, and vLLM's transfers.

Both hand model.load_weights() tensors by the checkpoint's names. Those of experts that were made from a checkpoint
are kept here until one of another layer comes; then the GPU makes the kernel's tensors from them, as from the
checkpoint's own, in the memory that they have. vLLM leaves these layers as they are, and loads all others.
"""
from __future__ import annotations

import contextlib
import functools
import time
from typing import Any, Dict, Iterable, Iterator, NamedTuple, Optional, Tuple

from mxfp4_repack.errors import NotFoundError
from mxfp4_repack.made import MadeBlob
from mxfp4_repack.plugin import checkpoint, places
from mxfp4_repack.plugin.engine import log
from mxfp4_repack.plugin.hook import BlobRefused, reason
from mxfp4_repack.plugin.names import PLACES

_RESET = "reset"


class _Layer(NamedTuple):
    module: Any
    places: places.Places
    device: Any
    tensors: Dict[str, Any]  # that came, by the checkpoint's names


class Sent:
    """The layers of one model that are made from what is sent, by their prefixes in the checkpoint."""

    def __init__(self, hook: Any, model: Any) -> None:
        """Called once `model` is loaded, and its sources are open still."""
        self._hook, self._layers, self._made, self._seconds = hook, {}, 0, 0.0
        self._last: Optional[_Layer] = None
        for module in model.modules():
            noted = vars(module).get(PLACES)
            if noted is not None:
                with contextlib.suppress(Exception):  # vLLM loads it again, as it does without this program
                    self._add(module, noted)
        if self._layers:
            model.load_weights = functools.partial(self._load_weights, model.load_weights)

    def _add(self, module: Any, noted: places.Places) -> None:
        blob, entry = self._hook.sources.agree(noted.live)
        device = next(iter(places.tensors_of(module))).device
        if not isinstance(blob, MadeBlob) or not _is_gpu(device):
            return
        with blob.layer(entry["prefix"]) as source:
            places.memory(module, noted, source)
            if source.can_make_on_gpu():
                hold(module, self._end)
                self._layers[entry["prefix"]] = _Layer(module, noted, device, {})

    def _load_weights(self, original: Any, weights: Iterable[Tuple[str, Any]], *args: Any, **kwargs: Any) -> Any:
        try:
            result = original(self._others(weights), *args, **kwargs)
        except Exception:
            self._forget()
            raise
        for layer in self._layers.values():  # the sender's buffers are used again
            layer.tensors.update([(name, tensor.clone()) for name, tensor in layer.tensors.items()])
        return result

    def _forget(self) -> None:
        self._last, self._made, self._seconds = None, 0, 0.0
        for layer in self._layers.values():
            layer.tensors.clear()

    def _others(self, weights: Iterable[Tuple[str, Any]]) -> Iterator[Tuple[str, Any]]:
        for name, tensor in weights:
            layer = self._layer_of(name)
            if layer is None:
                yield name, tensor
                continue
            if self._last is not None and self._last is not layer:
                self._make(self._last, whole=False)
            self._last = layer
            layer.tensors[name] = tensor.to(layer.device).contiguous()

    def _layer_of(self, name: str) -> Optional[_Layer]:
        at = name.rfind(".")
        while at > 0:  # a layer's prefix is some of the name's words
            layer = self._layers.get(name[:at])
            if layer is not None:
                return layer if checkpoint.is_raw_name(name[at + 1:]) and is_held(layer.module) else None
            at = name.rfind(".", 0, at)
        return None

    def _make(self, layer: _Layer, whole: bool) -> None:
        """whole: nothing more comes, so that a tensor that is missing is an error."""
        from mxfp4_repack import loader
        begin = time.monotonic()
        try:
            blob, entry = self._hook.sources.agree(layer.places.live)
            with blob.layer(entry["prefix"]) as source:
                flats = places.memory(layer.module, layer.places, source)
                loader.make_into(source, layer.device, flats, layer.tensors)
        except NotFoundError as error:
            if not whole:
                return
            raise BlobRefused(f"mxfp4-repack: the weights that were sent: {error}") from None
        except Exception as error:
            raise BlobRefused(f"mxfp4-repack: {layer.module.layer_name}: its weights are not whole until they are sent "
                              f"again: {reason(error)}") from None
        layer.tensors.clear()
        self._made += 1
        self._seconds += time.monotonic() - begin

    def _end(self) -> None:
        """vLLM calls it at the end of a reload, for each of the layers."""
        from mxfp4_repack import loader
        waiting = [layer for layer in self._layers.values() if layer.tensors]
        if not waiting and not self._made:
            return
        try:
            for layer in waiting:
                self._make(layer, whole=True)
            log.info("mxfp4-repack: %d layers made from weights that were sent, in %.2f s", self._made, self._seconds)
        finally:
            self._forget()
            self._hook.sources.close()
            loader.release()


def _is_gpu(device: Any) -> bool:
    return bool(device.type == "cuda")


def info_of(module: Any) -> Any:
    """What vLLM's layerwise reload notes of a module."""
    from vllm.model_executor.model_loader.reload.layerwise import get_layerwise_info
    return get_layerwise_info(module)


def guard(module: Any) -> None:
    """Makes vLLM's layerwise reload leave the module as it is: one that was begun already, and has nothing to load.

    vLLM puts back what it noted, here the parameters themselves, and forgets the note at the end.
    """
    info = info_of(module)
    info.load_numel = info.load_numel_total = 0
    info.kernel_tensors = tuple({name: tensor for name, tensor in tensors.items() if tensor is not None}
                                for tensors in (module._parameters, module._buffers))
    if hasattr(info, "kernel_non_persistent_buffers"):  # since 0.26
        info.kernel_non_persistent_buffers = set(module._non_persistent_buffers_set)


def hold(module: Any, end: Any) -> None:
    """Guards the module for good. `end` is called where vLLM would forget what it noted."""
    guard(module)
    setattr(info_of(module), _RESET, end)


def is_held(module: Any) -> bool:
    return _RESET in vars(info_of(module))


def let_go(module: Any) -> None:
    """Leaves the module to vLLM."""
    info = info_of(module)
    vars(info).pop(_RESET, None)
    info.reset()
