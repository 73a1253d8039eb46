"""MXFP4_REPACK_SKIP_RAW: raw experts of layers that a source has are not read nor held by the engine.

The plug-in decides for each layer before loading, when its method creates the parameters: if every
fact agrees, the layer is covered. Its parameters are created without data (on torch's meta device),
and the loader leaves out its raw tensors. The conversion then finds parameters without data; if the
source fails there, it is an error. The engine loads other layers as usual. Only the first load leaves
tensors out: for a reload, or an update of weights, no layer is covered.
"""
from __future__ import annotations

from typing import Any, Callable, Dict, Mapping

from mxfp4_repack.plugin import checkpoint, engine
from mxfp4_repack.plugin.calls import PARAMETERS, tensors_without_data
from mxfp4_repack.plugin.facts import Mismatch


class SkippedLayers:
    """The covered layers of a process, from the creation of their parameters to their conversion."""

    def __init__(self, hook: Any) -> None:
        self._hook = hook
        self._prefixes: Dict[str, str] = {}  # prefix in the checkpoint -> name in the engine

    def covers(self, tensor_name: str) -> bool:
        """Whether this names a raw tensor of a covered layer."""
        for prefix in self._prefixes:
            if tensor_name.startswith(prefix + "."):
                return checkpoint.is_raw_name(tensor_name[len(prefix) + 1:])
        return False

    def add(self, prefix: str, name: str) -> None:
        """Covers the layer `name` of the engine, whose raw tensors are below `prefix`."""
        self._prefixes[prefix] = name

    def forget(self, layer_name: str) -> None:
        for prefix, name in list(self._prefixes.items()):
            if name == layer_name:
                del self._prefixes[prefix]

    def create_weights(self, original: Callable[[], Any], method: Any, layer: Any,
                       arguments: Mapping[str, Any]) -> Any:
        """Called instead of the method's create_weights; calls that, for a covered layer without
        memory behind the parameters.

        `original`: the method's function, bound to its `arguments`.
        """
        name = getattr(layer, "layer_name", "a layer")
        try:
            prefix = self._covered_prefix(method, layer, arguments)
        except Exception as error:
            why = str(error) if isinstance(error, Mismatch) else f"{type(error).__name__}: {error}"
            self._hook.say(name, "its raw experts are loaded", why)
            return original()
        result = self._without_memory(original)
        empty = tensors_without_data(layer)
        others = sorted(n for n in empty if n not in PARAMETERS)
        if others:  # the engine needs these, and their values are lost: create all again, with memory
            for n in empty:
                delattr(layer, n)
            self._hook.say(name, "its raw experts are loaded", f"it has {', '.join(others)} too")
            return original()
        self.add(prefix, name)
        return result

    @staticmethod
    def _without_memory(original: Callable[[], Any]) -> Any:
        import torch
        meta: Any = torch.device("meta")
        with meta:
            return original()

    def _covered_prefix(self, method: Any, layer: Any, arguments: Mapping[str, Any]) -> str:
        import torch
        if not hasattr(torch.device, "__enter__"):
            raise Mismatch("torch", "2.0 or newer", torch.__version__)
        live = self._hook.planned(method, layer, arguments)
        if live.origin is not None and live.origin.refusals:
            raise Mismatch("deployment", "converted experts only", live.origin.refusals[0])
        blob, entry = self._hook.sources.agree(live)
        if self._hook.sources.verify_mode(live, blob) != "none":
            raise Mismatch("verification", f"{engine.name()}'s own result is needed to compare with: its converters "
                                           "are not known to make these bytes, or a comparison was asked for")
        with blob.layer(entry["prefix"]):  # raises unless its file is there and whole
            return str(entry["prefix"])
