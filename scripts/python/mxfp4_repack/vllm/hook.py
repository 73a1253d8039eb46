"""The hook of vLLM: what it adds to the common one are the calls of vLLM's converters, the method classes
that convert by themselves, and mega MoE."""
from __future__ import annotations

import inspect
import sys
from typing import Any, Callable, Mapping, Optional, Sequence

from mxfp4_repack.plugin import hook as common
from mxfp4_repack.plugin import others, places
from mxfp4_repack.plugin.engine import log
from mxfp4_repack.plugin.facts import Mismatch, OneOf
from mxfp4_repack.plugin.hook import BlobRefused, reason
from mxfp4_repack.plugin.live import Origin
from mxfp4_repack.plugin.names import BLOCK, ORIGIN
from mxfp4_repack.vllm import converter_code, facts
from mxfp4_repack.vllm.calls import ConverterCall, MethodCall, backend_of
from mxfp4_repack.vllm.live import Live, current_origin
from mxfp4_repack.vllm.mega import MegaLayers
from mxfp4_repack.vllm.names import FAMILIES, WEIGHT_UTILS

__all__ = ["BlobRefused", "Hook"]

BIAS_DTYPES = {"QuarkOCP_MX_MoEMethod": "float32"}


class Hook(common.Hook):
    """State of one process."""

    facts = facts

    def __init__(self, settings: Any, origin: Optional[Origin] = None) -> None:
        super().__init__(settings, origin)
        self._mega = MegaLayers(self)
        self.device: Optional[Any] = None  # where the loader moves tensors that are not experts; None: vLLM does

    def current_origin(self) -> Optional[Origin]:
        return current_origin()

    def planned(self, method: Any, layer: Any, arguments: Mapping[str, Any]) -> Live:
        kind = type(method).__name__
        if kind not in FAMILIES:
            raise Mismatch("method class", OneOf(FAMILIES), kind)
        experts, hidden = arguments["num_experts"], arguments["hidden_size"]
        inner = arguments["intermediate_size_per_partition"]
        bias = BIAS_DTYPES.get(kind, "bfloat16") if layer.moe_config.has_bias else None
        for switch, value in vars(method).items():
            # is_k3_situ_aiter bypasses only the selector: the oracle's converter serves it, but in 0.27, where
            # the method has a conversion for it.
            own = switch != "is_k3_situ_aiter" or hasattr(method, "_setup_kernel_k3_situ")
            if switch.startswith("is_k3_situ") and own and value:
                raise Mismatch("conversion", "vLLM's oracle", f"the method's own ({switch})")
        # ORACLE is imported: the name of the method's backend comes from it.
        return Live(
            layer, method=method, family=FAMILIES[kind], backend=backend_of(method),
            shapes={"w13_weight": (experts, 2 * inner, hidden // 2),
                    "w2_weight": (experts, hidden, inner // 2),
                    "w13_weight_scale": (experts, 2 * inner, hidden // BLOCK),
                    "w2_weight_scale": (experts, hidden, inner // BLOCK)},
            biases={"w13_bias": bias, "w2_bias": bias},
            fingerprint=converter_code.installed_code(), origin=getattr(layer, ORIGIN, None),
            input_scales=bool(getattr(method, "static_input_scales", False)),
            params_dtype=arguments["params_dtype"])

    def convert(self, family: str, original: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Called instead of the converter of `family`, `original`."""
        with self.converting() as outermost:
            call = self._call(family, original, args, kwargs) if outermost else None
            if call is None:
                return original(*args, **kwargs)
            result = self.answer(call)
        self.done(call.name)
        return result

    def _call(self, family: str, original: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Optional[ConverterCall]:
        """None if this vLLM passes its converter other arguments than the known ones."""
        try:
            return ConverterCall(family, original, args, kwargs)
        except Exception as error:
            why = f"the arguments of {original.__name__} are not understood: {reason(error)}"
        no_raw = any(getattr(value, "is_meta", False) for value in (*args, *kwargs.values()))
        if no_raw or self.lacks_raw(self.origin or current_origin()):
            raise BlobRefused(f"mxfp4-repack: {self.not_from}, and the raw experts were not "
                              f"loaded: {why}")
        if self.settings.strict:
            raise BlobRefused(f"mxfp4-repack: {self.not_from}: {why}")
        log.warning("mxfp4-repack: vLLM converts: %s", why)
        return None

    def method_call(self, original: Callable[..., Any], method: Any, layer: Any) -> MethodCall:
        return MethodCall(original, method, layer)

    def other_weights(self, original: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Called instead of vLLM's iterator over the tensors of safetensors files, `original`."""
        try:
            given = inspect.signature(original).bind(*args, **kwargs)
            files = given.arguments["hf_weights_files"]
        except (TypeError, KeyError):
            return original(*args, **kwargs)
        # Another way of reading is the user's wish.
        if self.device is None or given.arguments.get("safetensors_load_strategy") not in (None, "lazy"):
            return original(*args, **kwargs)
        local, utils = given.arguments.get("local_expert_ids"), sys.modules[WEIGHT_UTILS]

        def rest(left: Sequence[str], unwanted: Callable[[str], bool]) -> Any:
            given.arguments["hf_weights_files"] = left
            return (item for item in original(*given.args, **given.kwargs) if not unwanted(item[0]))

        return others.weights(files, self.device, lambda name: bool(utils.should_skip_weight(name, local)), rest)

    def placed(self, layer: Any, live: Any, blob: Any, source: Any, tensors: Mapping[str, Any]) -> None:
        if self.origin is not None:  # only the load format is asked for weights again
            places.note(layer, live, blob, source, tensors)

    def mega_created(self, experts: Any) -> None:
        """Called once vLLM has made experts of mega MoE."""
        self._mega.created(experts, self.origin or current_origin())

    def mega_converts(self, original: Callable[[], Any], experts: Any) -> Any:
        """Called instead of `original`, by which such experts convert what they loaded."""
        return self._mega.convert(experts, original)

    def finish(self, model: Any) -> None:
        try:
            self._mega.finish()
        except Exception as error:
            raise BlobRefused(f"mxfp4-repack: {self.not_from}, and the raw experts were not loaded: "
                              f"{reason(error)}") from None
        if self._mega.names and not self.waiting:
            self.sum_up()
        super().finish(model)
        for module in model.modules():
            places.settle(module)
