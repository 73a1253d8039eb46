"""What a hook answers: one layer's conversion by the engine, which can be answered from a source or run."""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from mxfp4_repack.plugin import checkpoint
from mxfp4_repack.plugin.live import Live, Origin
from mxfp4_repack.plugin.names import SLOTS

# Parameters of raw experts, as layers have them while they are loaded.
PARAMETERS = (*SLOTS, "w13_weight_packed", "w2_weight_packed", "w13_weight_bias", "w2_weight_bias",
              "w13_weight_scale_inv", "w2_weight_scale_inv")


class Call:
    """A layer's conversion. layer: the engine's; arguments: the raw tensors, by slot."""

    layer: Any
    arguments: Mapping[str, Any]
    made: Mapping[str, Any] = {}  # after compared(): the engine's own tensors, by a source's names

    @property
    def name(self) -> str:
        return str(getattr(self.layer, "layer_name", "a layer"))

    @property
    def origin(self) -> Optional[Origin]:
        raise NotImplementedError

    @property
    def raw_missing(self) -> bool:
        raw = self.arguments["w13_weight"]
        return bool(getattr(raw, "is_meta", False)) or model_lacks_raw(self.origin)

    def device(self) -> Any:
        """Where the layer's weights belong."""
        raise NotImplementedError

    def __call__(self, replaced: Mapping[str, Any]) -> Any:
        """The engine's own conversion, with some arguments, by name, replaced."""
        raise NotImplementedError

    def live(self) -> Live:
        raise NotImplementedError

    def build(self, source: Any, tensors: Mapping[str, Any]) -> Any:
        """What the engine's own conversion returns, with its effects on the layer, from a source's tensors."""
        raise NotImplementedError

    def compared(self, source: Any, tensors: Mapping[str, Any]) -> Tuple[Any, List[str]]:
        """The engine's own conversion, and where its result differs from a source's tensors."""
        raise NotImplementedError

    def saved(self) -> Any:
        """What restore() puts back."""
        return {name: getattr(self.layer, name) for name in PARAMETERS
                if getattr(self.layer, name, None) is not None}

    def restore(self, saved: Any) -> None:
        """Puts back the parameters that the engine's code deleted before it failed: the next call reads them."""
        for name, value in saved.items():
            if getattr(self.layer, name, None) is not value:
                if hasattr(self.layer, name):
                    delattr(self.layer, name)
                setattr(self.layer, name, value)


def replace_parameter(layer: Any, name: str, tensor: Any) -> None:
    """Another tensor in the parameter's place, with the same attributes."""
    import torch
    parameter = torch.nn.Parameter(tensor, requires_grad=False)
    for attribute, value in vars(layer._parameters[name]).items():
        vars(parameter).setdefault(attribute, value)
    layer._parameters[name] = parameter


def model_lacks_raw(origin: Optional[Origin]) -> bool:
    """Whether the engine loads a model directory that has a blob and no raw experts."""
    return origin is not None and checkpoint.lacks_raw_experts(checkpoint.model_directory(origin))


def tensors_without_data(layer: Any) -> List[str]:
    """Names of the layer's parameters, buffers and other tensors on the meta device."""
    places: Sequence[Dict[str, Any]] = (layer._parameters, layer._buffers, vars(layer))
    return [n for place in places for n, value in place.items() if getattr(value, "is_meta", False)]
