"""What the hook answers: process_weights_after_loading() of one layer."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from mxfp4_repack.plugin import build
from mxfp4_repack.plugin.calls import Call, replace_parameter, tensors_without_data
from mxfp4_repack.plugin.facts import Mismatch
from mxfp4_repack.plugin.live import Origin
from mxfp4_repack.plugin.names import ORIGIN
from mxfp4_repack.sglang.dry_run import kernels_replaced, vectors_on
from mxfp4_repack.sglang.live import Live, backend_of, current_origin
from mxfp4_repack.sglang.names import DEVICE, PARAMETERS, WRAPPERS


class MethodCall(Call):
    """A layer's conversion by its method. SGLang's own code runs in each case, on a source's tensors without data."""

    def __init__(self, original: Callable[..., Any], method: Any, layer: Any) -> None:
        self._original, self._method, self.layer = original, method, layer
        self.arguments = {slot: getattr(layer, name) for slot, name in _present(layer).items()}
        self.arguments["w13_weight"]  # KeyError: another class than the known one

    @property
    def origin(self) -> Optional[Origin]:
        return getattr(self.layer, ORIGIN, None) or current_origin()

    def device(self) -> Any:
        raw = self.arguments["w13_weight"]
        return getattr(self.layer, DEVICE) if raw.is_meta else raw.device

    def __call__(self, replaced: Mapping[str, Any]) -> Any:
        return self._original(self._method, self.layer)

    def live(self) -> Live:
        return Live.of(self._method, self.layer, self.origin, {s: t.shape for s, t in self.arguments.items()},
                       bool(getattr(self._method, "with_bias", False)))

    def build(self, source: Any, tensors: Mapping[str, Any]) -> Any:
        kept = {}
        for slot, name in _present(self.layer).items():
            raw = self.layer._parameters[name]
            kept[name] = raw
            replace_parameter(self.layer, name, raw.data.to("meta"))
        self._convert_without_data(source, tensors)
        given = {slot: tensor for slot, tensor in tensors.items()
                 if not (slot in build.WRAPPED and build.is_wrapped(source))}
        for slot, name in _present(self.layer).items():
            if slot in given:
                self._put(name, given.pop(slot))
            elif self.layer._parameters[name].is_meta:
                self._left(slot, name, kept.get(name))
        if given:
            raise Mismatch("parameters after the conversion", ", ".join(given), "none of these")
        lost = tensors_without_data(self.layer) + tensors_without_data_in(vars(self._method))
        if lost:
            raise Mismatch("tensors without data", "none", ", ".join(lost))

    def _convert_without_data(self, source: Any, tensors: Mapping[str, Any]) -> None:
        with vectors_on(self.device()), kernels_replaced(self._method, backend_of(self._method)):
            if not build.is_wrapped(source):
                self({})
                return
            with build.convert_layout_replaced(build.StandIn(source, tensors)) as stand_in:
                self({})
            stand_in.finished()

    def _put(self, name: str, tensor: Any) -> None:
        """A source's tensor in the place of what SGLang would have made there."""
        wanted = self.layer._parameters[name]
        if wanted.dtype != tensor.dtype and wanted.element_size() == 1 == tensor.element_size():
            tensor = tensor.view(wanted.dtype)  # bytes, by another name
        for what, ours, theirs in (("type", str(tensor.dtype), str(wanted.dtype)),
                                   ("shape", list(tensor.shape), list(wanted.shape))):
            if ours != theirs:
                raise Mismatch(f"{what} of {name} after the conversion", ours, theirs)
        replace_parameter(self.layer, name, tensor)

    def _left(self, slot: str, name: str, raw: Any) -> None:
        """A parameter that SGLang keeps and its kernels do not read: raw scales beside wrapped ones, and zeros
        in the place of biases that the checkpoint does not have."""
        import torch
        parameter = self.layer._parameters[name]
        if slot.endswith("bias"):
            value = torch.zeros(parameter.shape, dtype=parameter.dtype, device=self.device())
        elif raw is None or raw.is_meta:
            value = torch.empty(0, dtype=parameter.dtype, device=self.device())
        else:
            value = raw.data
        replace_parameter(self.layer, name, value)

    def compared(self, source: Any, tensors: Mapping[str, Any]) -> Tuple[Any, List[str]]:
        wrapped = build.is_wrapped(source)
        if wrapped:
            with build.convert_layout_replaced(build.LayoutWitness(source, tensors)) as witness:
                self({})
            found = witness.all_differences()
        else:
            self({})
            found = []
        here = _present(self.layer)
        for slot, tensor in tensors.items():
            if wrapped and slot in build.WRAPPED:
                continue
            own = getattr(self.layer, here[slot]) if slot in here else None
            if own is not None and own.element_size() == 1 == tensor.element_size():
                own = own.data.view(tensor.dtype)
            found += build.tensor_differences(slot, tensor, own)
        return None, found

    def saved(self) -> Any:
        return [(place, dict(place)) for place in (
            self.layer._parameters, self.layer._buffers, vars(self.layer), vars(self._method))]

    def restore(self, saved: Any) -> None:
        for place, former in saved:
            place.clear()
            place.update(former)


def _present(layer: Any) -> Dict[str, str]:
    """The blob's tensor -> the name of the layer's parameter."""
    return {slot: name for slot, names in PARAMETERS.items() for name in names if name in layer._parameters}


def tensors_without_data_in(attributes: Mapping[str, Any]) -> List[str]:
    return [name for name, value in attributes.items()
            if getattr(value, "is_meta", False) and name not in WRAPPERS.values()]
