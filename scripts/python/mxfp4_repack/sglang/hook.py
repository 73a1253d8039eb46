"""The hook of SGLang: answers process_weights_after_loading() of its MXFP4 method classes."""
from __future__ import annotations

import inspect
from typing import Any, Callable, Mapping, Optional, Sequence

from mxfp4_repack.plugin import hook as common
from mxfp4_repack.plugin.engine import log
from mxfp4_repack.plugin.live import Origin
from mxfp4_repack.plugin.names import BLOCK, CONVERTED
from mxfp4_repack.sglang import facts
from mxfp4_repack.sglang.calls import MethodCall
from mxfp4_repack.sglang.dry_run import vectors_on
from mxfp4_repack.sglang.live import Live, current_origin
from mxfp4_repack.sglang.names import DEVICE


class Hook(common.Hook):
    """State of one process."""

    facts = facts

    def current_origin(self) -> Optional[Origin]:
        return current_origin()

    def planned(self, method: Any, layer: Any, arguments: Mapping[str, Any]) -> Live:
        experts, hidden = arguments["num_experts"], arguments["hidden_size"]
        inner = arguments["intermediate_size_per_partition"]
        return Live.of(method, layer, self.origin or current_origin(), {
            "w13_weight": (experts, 2 * inner, hidden // 2), "w2_weight": (experts, hidden, inner // 2),
            "w13_weight_scale": (experts, 2 * inner, hidden // BLOCK),
            "w2_weight_scale": (experts, hidden, inner // BLOCK)}, bool(arguments.get("with_bias")))

    def create_weights(self, original: Callable[..., Any], method: Any, args: Sequence[Any],
                       kwargs: Mapping[str, Any]) -> Any:
        import torch
        try:
            layer = inspect.signature(original).bind(method, *args, **kwargs).arguments["layer"]
            setattr(layer, DEVICE, torch.empty(0).device)
        except Exception as error:
            log.warning("mxfp4-repack: create_weights is not understood: %s", error)
            return original(method, *args, **kwargs)
        return super().create_weights(original, method, args, kwargs)

    def create_moe_runner(self, original: Callable[..., Any], method: Any, layer: Any, *args: Any,
                          **kwargs: Any) -> Any:
        """Called instead of a method's create_moe_runner, which makes numbers of experts where the weights lie."""
        weight = layer._parameters.get("w13_weight")
        if weight is None or not weight.is_meta or not hasattr(layer, DEVICE):
            return original(method, layer, *args, **kwargs)
        with vectors_on(getattr(layer, DEVICE)):
            return original(method, layer, *args, **kwargs)

    def method_call(self, original: Callable[..., Any], method: Any, layer: Any) -> MethodCall:
        return MethodCall(original, method, layer)

    def loaded(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Called instead of a loader's load_model."""
        model = original(*args, **kwargs)
        self.finish(model)
        return model
